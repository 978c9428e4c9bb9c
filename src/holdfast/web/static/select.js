// Rows that are selected: how many, all on the page, and their colour.

export function select() {
  document.addEventListener("change", (event) => {
    const form = event.target.closest("#bulk");
    if (!form) return;
    if (event.target.matches("[data-all]")) {
      for (const box of boxes(form)) box.checked = event.target.checked;
    }
    show(form);
  });
  document.addEventListener("reset", (event) => setTimeout(() => show(event.target), 0));
  document.addEventListener("holdfast:changed", () => {
    const form = document.getElementById("bulk");
    if (form) show(form);
  });
}

const boxes = (form) => [...form.querySelectorAll("tbody input[name=id]")];

function show(form) {
  const all = boxes(form);
  const picked = all.filter((box) => box.checked);
  for (const box of all) box.closest("tr").setAttribute("aria-selected", String(box.checked));
  const every = form.querySelector("[data-all]");
  if (every) {
    every.checked = picked.length > 0 && picked.length === all.length;
    every.indeterminate = picked.length > 0 && picked.length < all.length;
  }
  const number = form.querySelector("[data-selected]");
  if (number) number.textContent = String(picked.length);
}
