"use strict";
(() => {
  const save = (name, blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  };
  // The drawing with the light colours in it instead of the page's variables, so that it stands alone.
  const alone = (svg) =>
    new XMLSerializer().serializeToString(svg).replace(/var\(--[\w-]+, (#[0-9a-f]{6})\)/g, "$1");
  const asPng = (svg, name) => {
    const box = svg.viewBox.baseVal, scale = 3, image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = Math.round(box.width * scale);
      canvas.height = Math.round(box.height * scale);
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(name, blob), "image/png");
    };
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(alone(svg));
  };
  for (const button of document.querySelectorAll("button[data-export]")) {
    button.addEventListener("click", () => {
      const key = button.dataset.of, kind = button.dataset.export, name = key + "." + kind;
      if (kind === "csv") {
        const text = JSON.parse(document.getElementById("csv-" + key).textContent);
        return save(name, new Blob([text], { type: "text/csv" }));
      }
      const svg = document.querySelector("#" + key + " .wide svg");
      if (kind === "svg") save(name, new Blob([alone(svg)], { type: "image/svg+xml" }));
      else asPng(svg, name);
    });
  }
  const worth = (cell) => ("v" in cell.dataset ? (cell.dataset.v === "" ? null : Number(cell.dataset.v)) : cell.textContent);
  const compare = (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  };
  for (const button of document.querySelectorAll("thead button")) {
    button.addEventListener("click", () => {
      const head = button.parentElement, place = head.cellIndex, body = head.closest("table").tBodies[0];
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = Array.from(body.rows, (row) => [worth(row.cells[place]), row]);
      // What has no value stays at the end in both directions.
      rows.sort(([a], [b]) => (a === null || b === null || !down ? compare(a, b) : compare(b, a)));
      body.append(...rows.map(([, row]) => row));
    });
  }
  // What can be scrolled can be reached with the keyboard.
  const reachable = () => {
    for (const box of document.querySelectorAll(".scroll")) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  addEventListener("resize", reachable);
  addEventListener("toggle", reachable, true);
  reachable();
})();
