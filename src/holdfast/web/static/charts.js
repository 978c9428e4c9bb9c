// Charts are drawn by the server; here they say the time and the values below the pointer, or where
// the arrow keys have led. All charts of a group show the same moment, so that they can be compared.

let at = null; // { group, share }: of the width of a plot

export function charts() {
  document.addEventListener("pointermove", (event) => {
    const plot = event.target.closest?.(".plot");
    const svg = plot?.querySelector("svg");
    if (!svg) return plot ? undefined : leave();
    const box = svg.getBoundingClientRect();
    move(plot, (event.clientX - box.left) / box.width);
  });
  document.addEventListener("dblclick", (event) => closer(event.target.closest?.(".plot")));
  document.addEventListener("keydown", (event) => {
    const plot = event.target.closest?.(".plot");
    if (!plot || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" && at) return closer(plot);
    const last = values(plot).length - 1;
    if (last < 0) return;
    const here = at ? Math.round(at.share * last) : last + 1;
    const next = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: last }[event.key];
    if (next === undefined) return event.key === "Escape" ? leave() : undefined;
    event.preventDefault();
    move(plot, Math.min(last, Math.max(0, next)) / Math.max(1, last));
  });
  document.addEventListener("focusout", (event) => event.target.matches?.(".plot") && leave());
  document.addEventListener("holdfast:changed", () => at && show());
}

const values = (plot) => JSON.parse(plot.dataset.values ?? "[]");

function move(plot, share) {
  at = { group: plot.closest(".charts")?.id ?? "", share: Math.min(1, Math.max(0, share)) };
  show();
}

// A double click, or Enter, shows the moment more closely: it stands in the middle of a shorter range.
function closer(plot) {
  const group = plot?.closest(".charts");
  if (!at || !group?.dataset.closer) return;
  const { start, until, half } = group.dataset;
  const moment = Number(start) + at.share * (Number(until) - Number(start)) + Number(half);
  const link = new URL(group.dataset.closer, location.href);
  link.searchParams.set("until", new Date(moment * 1000).toISOString().slice(0, 16));
  location.href = link.href;
}

function leave() {
  if (!at) return;
  at = null;
  for (const element of document.querySelectorAll(".plot .mark, .plot .said")) element.remove();
}

function show() {
  for (const plot of document.querySelectorAll(".charts .plot")) {
    const said = values(plot);
    if (plot.closest(".charts").id !== at.group || !said.length) continue;
    const last = Math.max(1, said.length - 1);
    const place = Math.min(said.length - 1, Math.round(at.share * last));
    const isBars = "bars" in plot.dataset;
    const share = isBars ? (place + 0.5) / said.length : place / last;
    mark(plot, share * 300);
    say(plot, said[place], share);
  }
}

function mark(plot, x) {
  let line = plot.querySelector(".mark");
  if (!line) {
    line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    line.setAttribute("class", "mark");
    line.setAttribute("y1", "0");
    line.setAttribute("y2", "96");
    plot.querySelector("svg").append(line);
  }
  line.setAttribute("x1", x);
  line.setAttribute("x2", x);
}

function say(plot, [time, value], share) {
  let said = plot.querySelector(".said");
  if (!said) {
    said = document.createElement("output");
    said.className = "said";
    plot.append(said);
  }
  // Away from where one looks.
  said.classList.toggle("left", share > 0.5);
  const text = `${time} · ${value}`;
  if (said.textContent !== text) said.textContent = text;
}
