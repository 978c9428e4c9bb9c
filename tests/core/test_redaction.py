"""No password is shown, however the text that holds it is mistyped."""

from __future__ import annotations

import pytest

from holdfast.core.redaction import mask, redact

SECRET = "hunter2"
CORPUS = [
    "postgresql://u:hunter2@host/x",
    "postgresql://u:a@hunter2@host/x",
    "postgresql://u:hunter2@a@host/x",
    "postgresql://u:a/hunter2@host/x",
    "postgresql://u:a/hunter2/b@host/x",
    "postgresql://u:12/hunter2@host/x",
    "postgresql://u:a?hunter2@host/x",
    "postgresql://u:a#hunter2@host/x",
    "postgresql://u:a hunter2@host/x",
    "postgresql://u:hunter2:b@host/x",
    "postgresql://u:%20hunter2@host:5432/x?sslmode=require",
    "postgresql://:hunter2@host/x",
    "postgresql+psycopg://u:hunter2@host/x",
    "postgresq://u:hunter2@host/x",
    "postgresql:/u:hunter2@host/x",
    "postgresql//u:hunter2@host/x",
    "postgresql:u:hunter2@host/x",
    "postgresql:\\\\u:hunter2@host/x",
    "u:hunter2@host/x",
    "redis://u:hunter2@host/0",
    "sqlite://u:hunter2@host/x.db",
    "postgresql://host/x?password=hunter2",
    "postgresql://host/x?user=u&password=hunter2&sslmode=require",
    "postgresql://host/x?PASSWORD=hunter2",
    "postgresql://host/x?pass%77ord=hunter2",
    "postgresql://host/x?password=a hunter2",
    "postgresql://host/x?password=a'hunter2",
    "postgresql://host/x?sslpassword=hunter2",
    "postgresql://host/x?oauth_client_secret=hunter2",
    "host=h password=hunter2 dbname=x",
    "host=h password = hunter2 dbname=x",
    "host=h password='a b hunter2' dbname=x",
    r"host=h password='it\'s hunter2' dbname=x",
    "{'host': 'h', 'password': 'hunter2'}",
    '{"host": "h", "password": "hunter2"}',
    "cannot reach postgresql://u:hunter2@host/x: refused",
    "cannot reach postgresql://u:a@hunter2@host/x: refused",
    'invalid port number: "u:hunter2@host"',
    "Config(url='postgresql://u:hunter2@host/x', schema=None)",
    "python app.py --url postgresql://u:hunter2@host/x --token=hunter2",
    "Config(url='postgresql://h/x?user=u&password=hunter2', schema=None)",
    "python app.py --password=hunter2",
]


@pytest.mark.parametrize("part", ["a=", "a:", ":", "a", "='", "?", "x:/", ": @"])
def test_text_of_any_shape_is_looked_through(part: str) -> None:
    text = f"{part * 2_000} password=hunter2"
    assert SECRET not in redact(text)
    assert SECRET not in redact(f"x://{text}")


@pytest.mark.parametrize("text", CORPUS)
def test_no_password_is_shown(text: str) -> None:
    shown = redact(text)
    assert SECRET not in shown
    assert "***" in shown
    assert redact(shown) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://u:p@host:5432/x", "postgresql://u:***@host:5432/x"),
        ("postgresql://u@host/x", "postgresql://u@host/x"),
        (
            "postgresql://host/x?password=p&sslmode=off",
            "postgresql://host/x?password=***&sslmode=off",
        ),
        ("postgresql:///x?host=/run/postgresql", "postgresql:///x?host=/run/postgresql"),
        ("sqlite:////srv/tasks.db", "sqlite:////srv/tasks.db"),
        ("at 12:30 the server at [::1]:5432 refused", "at 12:30 the server at [::1]:5432 refused"),
        ("the user u has no password", "the user u has no password"),
    ],
)
def test_what_is_no_secret_stays(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_values_of_secret_keys_are_masked_however_deep_they_stand() -> None:
    given = [{"password": "hunter2", "user": {"api_key": ["hunter2"], "n": 1}}, ("hunter2",)]
    assert mask(given) == [
        {"password": "***", "user": {"api_key": "***", "n": 1}},
        ["hunter2"],
    ]
    assert mask({"iban": 1, "password": 2}, lambda key: key == "iban") == {
        "iban": "***",
        "password": 2,
    }
