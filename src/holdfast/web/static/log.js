// A log that is followed: new lines are added at its end, which stays in view while one is there.

const EVERY = 1000;

export function log() {
  const box = document.querySelector(".log[data-follow]");
  const full = document.querySelector(".log");
  if (full) full.scrollTop = full.scrollHeight;
  if (box) follow(box, box.dataset.follow, 0);
}

function follow(box, address, failed) {
  setTimeout(async () => {
    const atEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 24;
    const isHeld = document.hidden || !atEnd || !getSelection().isCollapsed;
    if (isHeld || !failed) state(isHeld ? "paused" : "on");
    if (isHeld) return follow(box, address, 0);
    let next = address;
    try {
      const answer = await fetch(address, { cache: "no-store", redirect: "error" });
      if (!answer.ok) throw new Error(answer.statusText);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const lines = page.querySelectorAll("li");
      const tail = box.querySelector(".tail");
      for (const line of lines) tail.before(document.importNode(line, true));
      next = page.querySelector("[data-next]")?.dataset.next;
      if (lines.length) box.scrollTop = box.scrollHeight;
      if (!next) {
        tail.firstElementChild.textContent = "end";
        tail.lastElementChild.textContent = "the task has ended";
        state("paused");
        return;
      }
      failed = 0;
    } catch {
      failed += 1;
      state("lost");
    }
    follow(box, next, failed);
  }, EVERY * 2 ** Math.min(failed, 3));
}

function state(now) {
  const mark = document.getElementById("following");
  if (!mark) return;
  mark.dataset.state = now;
  mark.textContent = { on: "Following", paused: "Held", lost: "No answer" }[now];
}
