// Pages that stay up to date: asked for again every two seconds, changed in place.
//
// A poll changes text, never where things stand. It waits while somebody reads closely: while text
// is selected, a dialog or a menu is open, something is typed, or the tab is hidden. Ages are
// counted on here; an answer that differs in nothing else is 304.

const EVERY = 2000;
const AT_MOST = 8000;
const SAID = { on: "Live", paused: "Held", lost: "No answer", out: "Log in again" };
let paused = false;
let tag = "";
let out = false;
let failed = 0;
let timer = 0;

export function live() {
  const button = document.getElementById("live");
  if (!button) return;
  htmx.registerExtension("holdfast", { htmx_before_morph_attr: keepsAttribute });
  button.addEventListener("click", toggle);
  document.addEventListener("holdfast:toggle-live", toggle);
  document.addEventListener("visibilitychange", () => document.hidden || soon(0));
  setInterval(age, 1000);
  soon(EVERY);
}

// What the visitor has opened, ticked or moved to is the visitor's.
function keepsAttribute(element, detail) {
  const name = detail.attrName;
  if (name === "open" && element.matches("details, dialog")) return false;
  if (name === "class" && element.matches("tr, .has-js")) return false;
  if (name === "aria-selected") return false;
  return true;
}

function toggle() {
  // The way to log in again leads back here.
  if (out) return location.reload();
  paused = !paused;
  show(paused ? "paused" : "on");
  if (!paused) soon(0);
}

function show(state) {
  const button = document.getElementById("live");
  button.dataset.state = state;
  button.setAttribute("aria-pressed", String(state !== "paused"));
  button.firstElementChild.textContent = SAID[state];
}

function soon(delay) {
  clearTimeout(timer);
  timer = setTimeout(poll, delay);
}

// A question that was asked, or the progress of an action, is no address to ask again.
const isStill = () => Boolean(document.querySelector("[data-still]"));

function isRead() {
  const picked = getSelection();
  if (picked && !picked.isCollapsed) return true;
  if (document.hidden || document.querySelector("dialog:modal, main details.adder[open]")) return true;
  const at = document.activeElement;
  return Boolean(at?.closest("main") && at.matches("input:not([type=checkbox]), textarea, select"));
}

async function poll() {
  if (paused || isStill()) return;
  if (isRead()) return soon(500);
  const again = document.querySelector("[data-again]")?.dataset.again ?? location.href;
  try {
    const headers = { "X-Holdfast-Live": "1" };
    if (tag) headers["If-None-Match"] = tag;
    const answer = await fetch(again, { headers, cache: "no-store", redirect: "manual" });
    if (answer.type === "opaqueredirect" || answer.status === 401) {
      // Until somebody logs in again, here or in another tab.
      out = true;
      show("out");
      return soon(AT_MOST);
    }
    if (answer.status === 200 && !paused && !isRead()) {
      await put(await answer.text());
      tag = answer.headers.get("ETag") ?? "";
    } else if (answer.status !== 304 && answer.status !== 200) {
      throw new Error(answer.statusText);
    }
    if (failed || out) show("on");
    failed = 0;
    out = false;
  } catch {
    failed += 1;
    show("lost");
  }
  if (!paused) soon(Math.min(AT_MOST, EVERY * 2 ** Math.min(failed, 4)));
}

async function put(text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  for (const id of ["nav", "main"]) {
    const fresh = page.getElementById(id);
    const old = document.getElementById(id);
    if (!fresh || !old || fresh.isEqualNode(old)) continue;
    await htmx.swap({ text: fresh.outerHTML, target: old, swap: "outerMorph", sourceElement: old });
  }
  age();
  document.dispatchEvent(new CustomEvent("holdfast:changed"));
}

// The same rule as in `web/pages/words.py`.
function age() {
  const now = Date.now() + skew();
  for (const time of document.querySelectorAll("time[datetime]")) {
    const seconds = Math.trunc((now - Date.parse(time.dateTime)) / 1000);
    const far = Math.abs(seconds);
    const text =
      far < 120 ? `${far}s`
      : far < 7200 ? `${Math.trunc(far / 60)}m`
      : far < 172800 ? `${Math.trunc(far / 3600)}h`
      : `${Math.trunc(far / 86400)}d`;
    let said = text;
    if ("ago" in time.dataset) said = `${text} ago`;
    if ("until" in time.dataset) said = seconds < 0 ? `in ${text}` : `${text} ago`;
    if (time.textContent !== said) time.textContent = said;
  }
}

// The database's clock goes, not the visitor's.
const loaded = Date.now();
const stated = Date.parse(document.body.dataset.now);
const skew = () => (Number.isNaN(stated) ? 0 : stated - loaded);
