// A list of any length of which only what is seen is in the document; arrows, Page Up and Down, Home, End and Enter.

const PRINTED = 60; // rows of a list on paper, the first

export class VirtualList {
  // make(): an element for a row; fill(row, item): puts an item into it; keyOf(item); open(item).
  constructor(box, height, { make, fill, keyOf, open, label, empty }) {
    Object.assign(this, { box, height, make, fill, keyOf, open, label, empty });
    this.items = [];
    this.rows = [];
    this.version = 0;
    this.look();
    this.chosen = -1;
    this.chosenKey = null;
    this.spacer = document.createElement("div");
    this.spacer.className = "spacer";
    this.spacer.setAttribute("role", "presentation");
    this.nothing = document.createElement("p");
    this.nothing.className = "empty";
    this.nothing.setAttribute("role", "presentation");
    box.append(this.spacer, this.nothing);
    box.addEventListener("scroll", () => {
      this.top = box.scrollTop;
      this.soon();
    }, { passive: true });
    box.addEventListener("keydown", (event) => this.key(event));
    box.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (row) {
        this.choose(Number(row.dataset.place));
        this.open(this.items[this.chosen]);
      }
    });
    for (const [event, many] of [["beforeprint", PRINTED], ["afterprint", 0]]) {
      addEventListener(event, () => {
        this.printed = many;
        this.draw();
      });
    }
    new ResizeObserver(() => {
      this.look();
      this.version += 1;
      this.soon();
    }).observe(box);
  }

  // How high the box is, and where it stands. To ask while rows are written to would lay out the page each time.
  look() {
    this.high = this.box.clientHeight;
    this.top = this.box.scrollTop;
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
    this.version += 1;
    if (this.chosenKey !== null) this.chosen = items.findIndex((one) => this.keyOf(one) === this.chosenKey);
    this.draw();
  }

  // Draws all rows anew that are seen, though the items are the same.
  again() {
    this.version += 1;
    this.draw();
  }

  // The place of an item says which element shows it, so that scrolling fills only the rows that come into sight.
  draw() {
    const { box, height, items } = this;
    const top = Math.max(0, Math.min(this.top, items.length * height - this.high)); // the box is told later that it got shorter
    if (this.long !== items.length) {
      this.long = items.length;
      this.spacer.style.height = `${items.length * height}px`;
      this.nothing.hidden = items.length > 0;
    }
    if (!items.length) this.nothing.textContent = this.empty();
    const first = this.printed ? 0 : Math.max(0, Math.floor(top / height) - 2);
    const last = Math.min(items.length, this.printed || Math.ceil((top + this.high) / height) + 2);
    this.pool(last - first);
    const { rows } = this;
    for (const row of rows) row.seen = false;
    for (let at = first; at < last; at += 1) this.row(rows[at % rows.length], at);
    for (const row of rows) if (row.box.hidden === row.seen) row.box.hidden = !row.seen;
    const seen = this.chosen >= first && this.chosen < last;
    const active = seen ? rows[this.chosen % rows.length].box.id : "";
    if (active !== this.active) {
      this.active = active;
      if (active) box.setAttribute("aria-activedescendant", active);
      else box.removeAttribute("aria-activedescendant");
    }
  }

  pool(many) {
    while (this.rows.length < many) {
      const made = this.make();
      made.classList.add("row");
      made.setAttribute("role", "option");
      made.style.height = `${this.height}px`;
      made.id = `${this.box.id}-${this.rows.length}`;
      // Spoken is a sentence in place of the cells, of which the screen shows as many as have room.
      for (const cell of made.children) cell.setAttribute("aria-hidden", "true");
      const spoken = document.createElement("span");
      spoken.id = `${made.id}-spoken`;
      spoken.hidden = true;
      made.setAttribute("aria-labelledby", spoken.id);
      made.append(spoken);
      this.rows.push({ box: made, spoken, at: -1, item: null, version: -1, chosen: null, seen: false });
      this.version += 1;
      this.box.append(made);
    }
  }

  row(row, at) {
    const item = this.items[at];
    row.seen = true;
    if (row.at !== at) {
      row.at = at;
      row.box.style.transform = `translateY(${at * this.height}px)`;
      row.box.dataset.place = at;
    }
    const chosen = at === this.chosen;
    if (row.chosen !== chosen) {
      row.chosen = chosen;
      row.box.classList.toggle("chosen", chosen);
      row.box.setAttribute("aria-selected", String(chosen));
    }
    if (row.item === item && row.version === this.version) return;
    Object.assign(row, { item, version: this.version });
    row.box.setAttribute("aria-posinset", at + 1);
    row.box.setAttribute("aria-setsize", this.items.length);
    row.spoken.textContent = this.label(item);
    this.fill(row.box, item);
  }

  choose(place) {
    if (!this.items.length) return;
    this.chosen = Math.max(0, Math.min(this.items.length - 1, place));
    this.chosenKey = this.keyOf(this.items[this.chosen]);
    const { box, height } = this;
    const top = this.chosen * height;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + height > box.scrollTop + box.clientHeight) box.scrollTop = top + height - box.clientHeight;
    this.top = box.scrollTop;
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
