"use strict";
(() => {
  // The page is complete without this script, which filters, sorts and copies its content.
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

  // A text that many findings share is on the page of the policy, and the findings link to it.
  const links = (root) => all('a[href^="#f"]', root);
  const there = (link) => one(link.getAttribute("href"));
  const referred = (root) => links(root).map(there);
  // A link to a shared text has no text of its own.
  const policyOf = (link) => one("summary b", there(link).closest(".page").parentElement).textContent;

  // The style sheet shows the kind of similar objects and the common words of their messages; as text they can be searched
  // and copied. All styles are read before the first change, after which a browser computes them again.
  const added = (element, side) => {
    const { content } = getComputedStyle(element, side);
    return content.startsWith('"') ? content.slice(1, -1).replace(/\\(.)/g, "$1") : "";
  };
  const common = all("#findings ol[class^=t]").map((list) => ({
    list, texts: all(":scope > p", list.firstElementChild).map((p) => [added(p, "::before"), added(p, "::after")]),
  }));
  for (const { list, texts } of common) {
    for (const li of list.children) {
      all(":scope > p", li).forEach((p, index) => {
        const [start, end] = texts[index];
        p.textContent = start + p.textContent + end;
      });
    }
    list.removeAttribute("class");
  }
  for (const list of all("#findings [data-kind]")) {
    for (const li of list.children) {
      li.prepend(`${list.dataset.kind}/`);
      li.normalize();
    }
    list.removeAttribute("data-kind");
  }

  // The lists of findings, with the properties for filters and sorting.
  const lists = all("#findings .list").map((box) => ({
    box,
    shown: PAGE,
    section: box.closest("section"),
    items: all(":scope > details", box).map((item) => {
      const found = all(":scope > ul > li", item);
      const beside = one("summary u", item);
      const members = all(":scope > ol > li", item);
      const names = members.map((li) => li.firstChild.textContent);
      if (!names.length) names.push(one("b", item).firstChild.textContent);
      const within = (name) => { const parts = name.split("/"); return parts.length > 2 ? parts[1] : "(cluster)"; };
      const [gpus = "", usd = ""] = all("summary > i", item).map((figure) => figure.textContent);
      return {
        item,
        members,
        beside,
        said: beside?.textContent,
        size: names.length,
        name: names[0],
        namespaces: names.map(within),
        policies: new Set(found.map((li) => policyOf(li.firstElementChild))),
        actions: new Set(found.map((li) => li.className || item.className || "d")),
        gpus: [...gpus.matchAll(/(?:^|, )([\d,.]+) /g)].reduce((sum, [, count]) => sum + numeric(count), 0),
        usd: usd.startsWith("$") ? numeric(usd.slice(1)) : usd ? Infinity : 0,
        text: null,
      };
    }),
  }));
  const form = one(".filters");
  const entries = lists.flatMap((list) => list.items);
  const offered = { namespace: entries.flatMap((entry) => entry.namespaces), policy: entries.flatMap((entry) => [...entry.policies]) };
  for (const [name, values] of Object.entries(offered)) {
    const names = [...new Set(values)].sort();
    form.elements[name].append(...names.map((value) => make("option", value)));
  }
  const output = one("output", form);

  const matches = (entry, wanted) => {
    const inside = (namespace) => !wanted.namespace || namespace === wanted.namespace;
    entry.count = entry.namespaces.filter(inside).length;
    if (!entry.count) return false;
    if (entry.members.length) {
      entry.beside.textContent = entry.count < entry.size ? `${entry.said}, ${entry.count.toLocaleString("en")} in ${wanted.namespace}` : entry.said;
    }
    entry.members.forEach((member, index) => { member.hidden = !inside(entry.namespaces[index]); });
    if (wanted.policy && !entry.policies.has(wanted.policy)) return false;
    if (wanted.action && !entry.actions.has(wanted.action)) return false;
    if (!wanted.words.length) return true;
    const words = () => [entry.item, ...referred(entry.item)].map((each) => each.textContent);
    entry.text ??= [...words(), ...entry.policies].join(" ").toLowerCase();
    return wanted.words.every((word) => entry.text.includes(word));
  };

  const show = (list) => {
    let seen = 0, objects = 0;
    for (const entry of list.items) {
      entry.item.hidden = !entry.matching;
      objects += entry.matching ? entry.count : 0;
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
  for (const link of all("#namespaces td a")) {
    link.addEventListener("click", () => {
      form.reset();
      form.elements.namespace.value = link.textContent;
      setTimeout(filter);
    });
  }

  // Shared texts are copied to the opened finding; code blocks get a button for copying.
  const copied = (pre) => [...pre.childNodes]
    .filter((node) => node.nodeName !== "BUTTON" && node.nodeName !== "DEL")
    .map((node) => node.textContent).join("").replace(/\n{2,}/g, "\n").trim() + "\n";
  const dress = (root) => {
    if (root.closest(".list")) {
      for (const link of links(root)) {
        const body = there(link);
        link.textContent = policyOf(link);
        link.parentElement.append(...body.cloneNode(true).childNodes);
        link.href = `#${body.closest(".page").id}`;
      }
    }
    for (const pre of all("pre", root)) {
      if (one("button", pre)) continue;
      const button = make("button", "Copy", async () => {
        try {
          await navigator.clipboard.writeText(copied(pre));
        } catch {
          // Some browsers deny the clipboard to local files; then the text is selected instead.
          getSelection().selectAllChildren(pre);
        }
        button.textContent = getSelection().isCollapsed ? "Copied" : "Selected";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
      pre.append(button);
    }
  };
  document.addEventListener("toggle", (event) => { if (event.target.open) dress(event.target); }, true);
  if (first) dress(first);

  // A print contains the filtered objects, with the details of those that would be denied.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = all("#today details:not([open]):not([hidden])");
    for (const item of opened) item.open = true;
  });
  addEventListener("afterprint", () => {
    for (const item of opened) item.open = false;
  });

  // The embedded JSON document as a file.
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
