// Charts are drawn by the server; here they tell the time and the value under the pointer.

export function charts() {
  document.addEventListener("pointermove", (event) => {
    const plot = event.target.closest?.(".plot svg");
    for (const mark of document.querySelectorAll(".plot .mark")) if (mark.parentNode !== plot) clear(mark);
    if (plot) show(plot, event);
  });
}

function clear(mark) {
  const said = mark.closest(".plot").querySelector(".said");
  mark.remove();
  if (said) said.remove();
}

function show(plot, event) {
  const values = JSON.parse(plot.dataset.values ?? "[]");
  if (!values.length) return;
  const box = plot.getBoundingClientRect();
  const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
  const place = Math.round(share * (values.length - 1));
  const x = (place / Math.max(1, values.length - 1)) * 300;
  let mark = plot.querySelector(".mark");
  if (!mark) {
    mark = document.createElementNS("http://www.w3.org/2000/svg", "line");
    mark.setAttribute("class", "mark");
    mark.setAttribute("y1", "0");
    mark.setAttribute("y2", "96");
    plot.append(mark);
  }
  mark.setAttribute("x1", x);
  mark.setAttribute("x2", x);
  let said = plot.parentNode.querySelector(".said");
  if (!said) {
    said = document.createElement("span");
    said.className = "said";
    plot.parentNode.append(said);
  }
  const [time, value] = values[place];
  said.textContent = `${time} · ${value}`;
}
