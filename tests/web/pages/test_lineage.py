from __future__ import annotations

import re
from uuid import UUID

from holdfast import Holdfast
from holdfast.core.identity import new_id
from holdfast.store.verbs import submit
from tests.client.conftest import Hands
from tests.support.verbs import submission
from tests.web.client import WebClient
from tests.web.pages.test_pages import check_markup
from tests.web.pages.zoo import Zoo


def test_what_a_task_comes_from_is_named(
    app: Holdfast, hands: Hands, zoo: Zoo, admin: WebClient
) -> None:
    child, gone = new_id(), new_id()
    root = zoo.failed.id.bytes
    family = [
        submission(id=child, parent_id=zoo.done.id.bytes, root_id=root),
        submission(id=gone, parent_id=new_id(), root_id=root),
    ]
    hands.run(submit.submit(family))
    text = admin.get(f"/tasks/{UUID(bytes=child)}").text
    check_markup(text)
    led = re.findall(r'href="([^"]+)"><bdi>([^<]+)</bdi></a><span class="n">([^<]+)<', text)
    assert led == [
        (f"/tasks/{zoo.failed.id}", "shop.fail", "began it all"),
        (f"/tasks/{zoo.done.id}", "shop.done", "sent this"),
    ]
    assert "shop.fail" in admin.get(f"/tasks/{UUID(bytes=gone)}").text
    step = zoo.workflow.steps()[0]
    assert '<bdi>month</bdi></a><span class="n">workflow<' in admin.get(f"/tasks/{step.id}").text
