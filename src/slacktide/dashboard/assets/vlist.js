// A list of any length of which only what is seen is in the document; arrows, Page Up and Down, Home, End and Enter.

export class VirtualList {
  // make(): an element for a row; fill(row, item): puts an item into it; keyOf(item); open(item).
  constructor(box, height, { make, fill, keyOf, open, label, empty }) {
    Object.assign(this, { box, height, make, fill, keyOf, open, label, empty });
    this.items = [];
    this.rows = [];
    this.chosen = -1;
    this.chosenKey = null;
    this.spacer = document.createElement("div");
    this.spacer.className = "spacer";
    this.spacer.setAttribute("role", "presentation");
    this.nothing = document.createElement("p");
    this.nothing.className = "empty";
    this.nothing.setAttribute("role", "presentation");
    box.append(this.spacer, this.nothing);
    box.addEventListener("scroll", () => this.soon(), { passive: true });
    box.addEventListener("keydown", (event) => this.key(event));
    box.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (row) {
        this.choose(Number(row.dataset.place));
        this.open(this.items[this.chosen]);
      }
    });
    new ResizeObserver(() => this.soon()).observe(box);
  }

  soon() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  set(items) {
    this.items = items;
    if (this.chosenKey !== null) this.chosen = items.findIndex((one) => this.keyOf(one) === this.chosenKey);
    this.draw();
  }

  draw() {
    const { box, height, items } = this;
    this.spacer.style.height = `${items.length * height}px`;
    this.nothing.textContent = items.length ? "" : this.empty();
    this.nothing.hidden = items.length > 0;
    const first = Math.max(0, Math.floor(box.scrollTop / height) - 2);
    const last = Math.min(items.length, Math.ceil((box.scrollTop + box.clientHeight) / height) + 2);
    this.first = first;
    while (this.rows.length < last - first) {
      const row = this.make();
      row.classList.add("row");
      row.setAttribute("role", "option");
      row.style.height = `${height}px`;
      row.id = `${box.id}-${this.rows.length}`;
      this.rows.push(row);
      box.append(row);
    }
    this.rows.forEach((row, place) => {
      const at = first + place;
      row.hidden = at >= last;
      if (row.hidden) return;
      row.style.transform = `translateY(${at * height}px)`;
      row.dataset.place = at;
      row.classList.toggle("chosen", at === this.chosen);
      row.setAttribute("aria-selected", String(at === this.chosen));
      row.setAttribute("aria-posinset", at + 1);
      row.setAttribute("aria-setsize", items.length);
      row.setAttribute("aria-label", this.label(items[at]));
      this.fill(row, items[at]);
    });
    const seen = this.chosen >= first && this.chosen < last;
    if (seen) box.setAttribute("aria-activedescendant", this.rows[this.chosen - first].id);
    else box.removeAttribute("aria-activedescendant");
  }

  visible() {
    return this.items.slice(this.first, this.first + this.rows.length);
  }

  choose(place) {
    if (!this.items.length) return;
    this.chosen = Math.max(0, Math.min(this.items.length - 1, place));
    this.chosenKey = this.keyOf(this.items[this.chosen]);
    const { box, height } = this;
    const top = this.chosen * height;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + height > box.scrollTop + box.clientHeight) box.scrollTop = top + height - box.clientHeight;
    this.draw();
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.box.clientHeight / this.height) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in steps) {
      this.choose(this.chosen < 0 ? 0 : this.chosen + steps[event.key]);
      event.preventDefault();
    } else if (event.key === "Enter" && this.chosen >= 0) {
      this.open(this.items[this.chosen]);
      event.preventDefault();
    }
  }
}
