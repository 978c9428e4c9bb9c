// Copy buttons, dialogs where the browser has no invoker commands, and actions that go on.

export function copy() {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy], [data-copy-link]");
    if (!button) return;
    const link = button.dataset.copyLink;
    const text = link ? new URL(link, location.href).href : button.dataset.copy;
    try {
      await navigator.clipboard.writeText(text);
      say(button, "Copied");
    } catch {
      say(button, "Not copied: the browser does not allow it");
    }
  });
}

function say(button, text) {
  const said = button.getAttribute("aria-label");
  button.setAttribute("aria-label", text);
  button.dataset.said = text;
  setTimeout(() => {
    delete button.dataset.said;
    if (said) button.setAttribute("aria-label", said);
    else button.removeAttribute("aria-label");
  }, 1500);
}

export function dialogs() {
  if ("commandForElement" in HTMLButtonElement.prototype) return;
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[command='show-modal']");
    const dialog = button && document.getElementById(button.getAttribute("commandfor"));
    if (dialog) dialog.showModal();
  });
}

// An action on many tasks: each answer is one batch, and the form for the next one.
export function goOn() {
  const form = document.querySelector("form[data-continue]");
  if (!form) return;
  const pause = Number(form.dataset.continue) * 1000;
  setTimeout(async () => {
    try {
      const answer = await fetch(form.action, {
        method: "POST",
        body: new URLSearchParams(new FormData(form)),
        headers: { "X-Holdfast-Live": "1" },
      });
      if (answer.status === 503) throw new Error(answer.statusText);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const main = page.getElementById("main") ?? page.body;
      document.getElementById("main").replaceChildren(...main.childNodes);
    } catch {
      setTimeout(goOn, 2000);
      return;
    }
    goOn();
  }, pause);
}
