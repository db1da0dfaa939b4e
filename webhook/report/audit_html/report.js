"use strict";
(() => {
  // Everything is on the page already; this shows less of it at a time, in another order, and copies.
  const PAGE = 50;
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (name, text, then) => {
    const made = document.createElement(name);
    made.textContent = text;
    if (name === "button") made.type = "button";
    if (then) made.addEventListener("click", then);
    return made;
  };

  const numeric = (text) => Number(text.replaceAll(",", ""));

  // What is the same in many findings stands once on the page of the policy, and links say where.
  const links = (root) => all('a[href^="#f"]', root);
  const referred = (root) => links(root).map((link) => one(link.getAttribute("href")));

  // Lists of findings: what each object is filtered and sorted by.
  const lists = all("#findings .list").map((box) => ({
    box,
    shown: PAGE,
    section: box.closest("section"),
    items: all(":scope > details", box).map((item) => {
      const found = all(":scope > ul > li", item);
      const names = all(":scope > ol > li", item).map((li) => li.textContent);
      if (!names.length) names.push(one("b", item).firstChild.textContent);
      const [gpus = "", usd = ""] = all("summary > i", item).map((figure) => figure.textContent);
      const parts = names[0].split("/");
      return {
        item,
        size: names.length,
        name: names[0],
        namespace: parts.length > 2 ? parts[1] : "(cluster)",
        policies: new Set(found.map((li) => li.firstElementChild.textContent)),
        actions: new Set(found.map((li) => li.className || item.className || "b")),
        gpus: [...gpus.matchAll(/(?:^|, )([\d,.]+) /g)].reduce((sum, [, count]) => sum + numeric(count), 0),
        usd: usd.startsWith("$") ? numeric(usd.slice(1)) : usd ? Infinity : 0,
        text: null,
      };
    }),
  }));
  const form = one(".filters");
  const output = one("output", form);

  const matches = (entry, wanted) => {
    if (wanted.namespace && entry.namespace !== wanted.namespace) return false;
    if (wanted.policy && !entry.policies.has(wanted.policy)) return false;
    if (wanted.action && !entry.actions.has(wanted.action)) return false;
    if (!wanted.words.length) return true;
    entry.text ??= [entry.item, ...referred(entry.item)].map((each) => each.textContent).join(" ").toLowerCase();
    return wanted.words.every((word) => entry.text.includes(word));
  };

  const show = (list) => {
    let seen = 0, objects = 0;
    for (const entry of list.items) {
      entry.item.hidden = !entry.matching;
      objects += entry.matching ? entry.size : 0;
      entry.item.classList.toggle("off", entry.matching && ++seen > list.shown);
    }
    list.more.hidden = seen <= list.shown;
    list.more.textContent = `Show ${Math.min(PAGE, seen - list.shown)} more of ${(seen - list.shown).toLocaleString("en")}`;
    list.none.hidden = seen > 0;
    list.box.hidden = one(".cols", list.section).hidden = !seen;
    one(".count", list.section).textContent = objects.toLocaleString("en");
    return objects;
  };

  const filter = () => {
    const values = new FormData(form);
    const wanted = {
      namespace: values.get("namespace"),
      policy: values.get("policy"),
      action: values.get("action"),
      words: values.get("search").toLowerCase().split(/\s+/).filter(Boolean),
    };
    let seen = 0, whole = 0;
    for (const list of lists) {
      for (const entry of list.items) entry.matching = matches(entry, wanted);
      list.shown = PAGE;
      seen += show(list);
      for (const entry of list.items) whole += entry.size;
    }
    output.textContent = `${seen.toLocaleString("en")} of ${whole.toLocaleString("en")} objects`;
  };

  const order = { name: (a, b) => a.name.localeCompare(b.name, "en", { numeric: true }) };
  for (const key of ["gpus", "usd"]) order[key] = (a, b) => b[key] === a[key] ? 0 : b[key] - a[key];

  for (const list of lists) {
    list.more = make("button", "", () => { list.shown += PAGE; show(list); });
    list.more.className = "more";
    list.none = make("p", "Nothing matches the filters.");
    list.none.className = "empty";
    list.box.after(list.none, list.more);
    for (const head of all("[data-sort]", list.section)) {
      const button = make("button", head.textContent, () => {
        const back = button.getAttribute("aria-pressed") === "true";
        all("[data-sort] button", list.section).forEach((other) => other.setAttribute("aria-pressed", "false"));
        button.setAttribute("aria-pressed", String(!back));
        list.items.sort((a, b) => (back ? order[head.dataset.sort](b, a) : order[head.dataset.sort](a, b)));
        list.box.append(...list.items.map((entry) => entry.item));
        show(list);
      });
      button.setAttribute("aria-pressed", "false");
      head.replaceChildren(button);
    }
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", filter);
  form.addEventListener("reset", () => setTimeout(filter));
  form.hidden = !lists.length;
  if (lists.length) filter();
  const first = one("#today .list details");
  if (first) first.open = true;

  // A row of the table of namespaces filters the lists.
  for (const link of all("[data-namespace]")) {
    link.addEventListener("click", () => {
      form.reset();
      form.elements.namespace.value = link.dataset.namespace;
      setTimeout(filter);
    });
  }

  // Advice that stands elsewhere comes to where it is read; what can be copied gets a button.
  const copied = (pre) => [...pre.childNodes]
    .filter((node) => node.nodeName !== "BUTTON" && node.nodeName !== "DEL")
    .map((node) => node.textContent).join("").replace(/\n{2,}/g, "\n").trim() + "\n";
  const dress = (root) => {
    if (root.closest(".list")) {
      for (const link of links(root)) {
        const there = one(link.getAttribute("href"));
        link.parentElement.append(...there.cloneNode(true).childNodes);
        link.href = `#${there.closest(".page").id}`;
      }
    }
    for (const pre of all("pre", root)) {
      if (one("button", pre)) continue;
      const button = make("button", "Copy", async () => {
        try {
          await navigator.clipboard.writeText(copied(pre));
        } catch {
          // A file that was opened from disk may not reach the clipboard in every browser: the text is marked instead.
          getSelection().selectAllChildren(pre);
        }
        button.textContent = getSelection().isCollapsed ? "Copied" : "Marked";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
      pre.append(button);
    }
  };
  document.addEventListener("toggle", (event) => { if (event.target.open) dress(event.target); }, true);
  if (first) dress(first);

  // Tables.
  for (const table of all("table")) {
    const body = table.tBodies[0];
    const heads = all("th", table);
    const value = (row, index) => {
      const { dataset, textContent } = row.cells[index];
      const number = dataset.v === undefined ? numeric(textContent) : Number(dataset.v);
      return Number.isNaN(number) ? textContent : number;
    };
    const compare = (a, b) => (typeof a === typeof b
      ? (typeof a === "number" ? b - a : a.localeCompare(b, "en", { numeric: true }))
      : typeof a === "number" ? -1 : 1);
    heads.forEach((head, index) => {
      if (one("td svg", table) && one("svg", body.rows[0].cells[index])) return;
      const button = make("button", head.textContent, () => {
        const back = head.getAttribute("aria-sort") !== null;
        const turned = back && head.dataset.turned !== "true";
        heads.forEach((other) => { other.removeAttribute("aria-sort"); delete other.dataset.turned; });
        head.dataset.turned = String(turned);
        const numeric = head.classList.contains("n");
        head.setAttribute("aria-sort", numeric !== turned ? "descending" : "ascending");
        const rows = [...body.rows].sort((a, b) => (turned ? -1 : 1) * compare(value(a, index), value(b, index)));
        body.append(...rows);
      });
      head.replaceChildren(button);
    });
  }

  // What is printed is what the filters leave, with the details of what would be denied.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = all("#today details:not([open]):not([hidden])");
    for (const item of opened) item.open = true;
  });
  addEventListener("afterprint", () => {
    for (const item of opened) item.open = false;
  });

  // The data for programs, as a file.
  const download = async () => {
    let text = one("#data").textContent;
    const found = JSON.parse(text);
    if (found.encoding) {
      const packed = Uint8Array.from(atob(found.data), (letter) => letter.charCodeAt(0));
      text = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
    }
    const link = make("a", "");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = "gpugate-audit.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  one("footer").append(" ", make("button", "Save the data as JSON", download));
})();
