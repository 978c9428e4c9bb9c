// The keyboard: / searches, j and k move, x selects, Enter opens, ? lists the keys.

const PLACES = { o: "/", t: "/tasks", w: "/workers", s: "/schedules", q: "/queues", d: "/dead-letters", f: "/workflows", a: "/audit" };
let going = 0;

export function keys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === "Escape") return leave();
    if (event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
    if (document.querySelector("dialog:modal")) return;
    if (press(event)) event.preventDefault();
  });
}

function press(event) {
  const key = event.key;
  if (going && Date.now() - going < 1500 && key in PLACES) {
    going = 0;
    location.href = document.body.dataset.prefix + PLACES[key];
    return true;
  }
  going = 0;
  if (key === "g") { going = Date.now(); return true; }
  if (key === "/") return focus(document.getElementById("q"));
  if (key === "?") { document.getElementById("keys").showModal(); return true; }
  if (key === "p") { document.dispatchEvent(new Event("holdfast:toggle-live")); return true; }
  if (key === "f") return filter();
  if (key === "j" || key === "k") return move(key === "j" ? 1 : -1);
  const row = cursor();
  if (key === "x" && row) {
    const box = row.querySelector("input[type=checkbox]");
    if (box) box.click();
    return Boolean(box);
  }
  if (key === "Enter" && row && !event.target.closest("a, button, input, summary")) {
    row.querySelector("th a, td a")?.click();
    return true;
  }
  const button = document.querySelector(`main [data-key="${CSS.escape(key)}"]`);
  if (button) { button.click(); return true; }
  return false;
}

function focus(element) {
  element?.focus();
  element?.select?.();
  return Boolean(element);
}

function filter() {
  const adder = document.querySelector("details.adder");
  if (!adder) return false;
  adder.open = true;
  return focus(adder.querySelector("input:not([type=hidden])"));
}

function leave() {
  for (const adder of document.querySelectorAll("details.adder[open]")) adder.open = false;
  if (document.activeElement?.matches("input, textarea, select")) document.activeElement.blur();
}

const rows = () => [...document.querySelectorAll("main tbody tr")].filter((row) => row.querySelector("a"));
const cursor = () => document.querySelector("main tr.cursor");

function move(step) {
  const all = rows();
  if (!all.length) return false;
  const at = all.indexOf(cursor());
  const next = all[Math.min(all.length - 1, Math.max(0, at < 0 ? 0 : at + step))];
  cursor()?.classList.remove("cursor");
  next.classList.add("cursor");
  next.scrollIntoView({ block: "nearest" });
  return true;
}
