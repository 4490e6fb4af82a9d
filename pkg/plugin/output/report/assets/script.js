(async () => {
  "use strict";
  const PAGE = 100; // rows that are added at a time
  const MEMBERS = 500; // objects of one change that are listed at a time
  const id = (name) => document.getElementById(name);
  const form = id("filters");
  // Without any of these the page stays as it is: the first changes, to be read.
  if (!form || !("DecompressionStream" in window)) return;

  const packed = Uint8Array.from(atob(id("data").textContent), (c) => c.charCodeAt(0));
  const text = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const lines = (await new Response(text).text()).split("\n");
  const changes = [], members = [];
  let at = 0;
  for (; lines[at]; at += 2) changes.push(Object.assign(JSON.parse(lines[at]), { diff: lines[at + 1], members: [] }));
  for (at++; lines[at]; at++) members.push(JSON.parse(lines[at]));
  const list = id("list"), count = id("count"), more = id("more");
  const number = new Intl.NumberFormat("en");

  // Everything becomes text: what names and values hold is never read as markup.
  const el = (tag, className, ...children) => {
    const out = document.createElement(tag);
    if (className) out.className = className;
    for (const child of children) if (child) out.append(child);
    return out;
  };
  const sign = (text) => {
    const out = el("span", "", text);
    out.setAttribute("aria-hidden", "true");
    return out;
  };
  const plural = (n, noun) => number.format(n) + " " + noun + (n === 1 ? "" : "s");
  const display = (m) => (m[1] ? m[1] + "/" : "") + m[2];

  // --- the data, made ready for searching ---
  const CLUSTER = "(cluster-scoped)";
  const byID = new Map();
  const kinds = new Map();
  for (const c of changes) {
    byID.set(c.id, c);
    c.policies = new Set(c.rules.map((r) => r.policy));
  }
  for (const m of members) {
    const c = byID.get(m[0]);
    c.members.push(m);
    kinds.set(c.kind, (kinds.get(c.kind) || 0) + 1);
  }
  // The words of a change are put together when something is searched for.
  const wordsOf = (c) => {
    if (c.words) return c.words;
    const words = [c.kind];
    for (const r of c.rules) {
      words.push(r.name, r.origin || "", ...(r.reasons || []), ...(r.warnings || []), ...(r.notes || []));
      for (const f of r.fields || []) words.push(f.path, f.from || "", f.to || "");
    }
    for (const w of [...(c.warnings || []), ...(c.alike || [])]) words.push(w.code, w.text);
    c.words = words.join("\n").toLowerCase();
    return c.words;
  };
  for (const kind of [...kinds.keys()].sort()) {
    const option = el("option", "", kind);
    option.value = kind;
    form.elements.kind.append(option);
  }

  // --- filters ---
  let matches = []; // [change, its members that match]
  let shown = 0;

  const membersOf = (c, f) => {
    if (f.level && c.level !== f.level && !(f.level === "warned" && (c.warnings || []).length)) return [];
    if (f.kind && c.kind !== f.kind) return [];
    if (f.policy && !c.policies.has(f.policy)) return [];
    const words = f.words.filter((w) => !wordsOf(c).includes(w));
    if (!words.length && !f.namespace) return c.members;
    return c.members.filter((m) => {
      if (f.namespace && (m[1] || CLUSTER) !== f.namespace) return false;
      const name = [display(m), ...(m[4] || [])].join("\n").toLowerCase();
      return words.every((w) => name.includes(w));
    });
  };

  const filter = () => {
    const f = { words: form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean) };
    for (const name of ["level", "policy", "namespace", "kind"]) f[name] = form.elements[name].value;
    matches = [];
    let objects = 0;
    for (const c of changes) {
      const members = membersOf(c, f);
      if (members.length) {
        matches.push([c, members]);
        objects += members.length;
      }
    }
    list.replaceChildren();
    shown = 0;
    show();
    tell(objects);
    return f;
  };

  const tell = (objects) => {
    let text = "No change matches.";
    if (matches.length) {
      text = plural(matches.length, "change") + ", " + plural(objects, "object");
      if (matches.length < changes.length) text += " (of " + plural(changes.length, "change") + ")";
      if (shown < matches.length) text += "; the first " + number.format(shown) + " are shown";
      text += ".";
    }
    count.textContent = text;
    count.dataset.objects = objects;
  };

  const show = () => {
    const rows = document.createDocumentFragment();
    for (const [c, members] of matches.slice(shown, shown + PAGE)) rows.append(row(c, members));
    shown = Math.min(shown + PAGE, matches.length);
    list.append(rows);
    const rest = matches.length - shown;
    more.hidden = rest === 0;
    more.textContent = "Show " + number.format(Math.min(rest, PAGE)) + " more of " + number.format(rest);
  };

  // --- a row; what is folded is built when it is opened ---
  const row = (c, members) => {
    const title = el("h3", "", el("span", "kind", c.kind), " ", el("span", "name", display(members[0])));
    if (members.length > 1) {
      const namespaces = new Set(members.map((m) => m[1])).size;
      title.append(" ", el("span", "others",
        "and " + number.format(members.length - 1) + " more" + (namespaces > 1 ? ", in " + number.format(namespaces) + " namespaces" : "")));
    }
    const details = el("details", "change " + c.level, el("summary", "", title, tags(c), c.brief && el("span", "brief", c.brief)));
    details.addEventListener("toggle", () => { if (details.open) build(details, c, members); });
    details.fill = () => build(details, c, members);
    return el("li", "", details);
  };

  const tags = (c) => el("span", "tags", ...(c.tags || []).flatMap((t) => [el("span", "tag " + t.class, t.text), " "]));

  const build = (details, c, members) => {
    if (details.childElementCount > 1) return;
    const body = el("div", "body", warnings(c, members));
    for (const r of c.rules) body.append(rule(r));
    const text = JSON.parse(c.diff);
    if (text) {
      const alone = c.members.length === 1;
      body.append(el("h4", "", "Diff" + (alone ? "" : " of " + display(c.members[0]))), sideBySide() ? sides(text) : diff(text));
    }
    if (c.members.length > 1 || c.members[0][4]) body.append(...objects(members));
    details.append(body);
  };

  const warnings = (c, members) => {
    let all = c.warnings || [];
    if (c.members.length > 1) {
      all = c.alike || [];
      const pods = members.reduce((n, m) => n + m[3], 0);
      if (pods) all = [{ code: "rollout", text: plural(pods, "Pod") + " would restart in total" }, ...all];
    }
    if (!all.length) return null;
    return el("ul", "warnings", ...all.map((w) => el("li", "", sign("! "), el("b", "", w.code), " " + w.text)));
  };

  const rule = (r) => {
    const head = el("h4", "", r.name);
    if (r.broken) head.append(" ", el("span", "tag failed", "✕ " + r.outcome));
    else if (r.outcome !== "changed") head.append(" ", el("span", "tag plain", r.outcome));
    if (r.origin) head.append(" ", el("span", "origin", r.origin));
    const out = el("section", "rule", head);
    for (const text of r.reasons || []) out.append(el("p", "reason", text));
    for (const text of r.warnings || []) out.append(el("p", "warned", sign("! "), text));
    for (const text of r.notes || []) out.append(el("p", "note", text));
    if (r.fields) out.append(el("ul", "fields", ...r.fields.map(field)));
    if (r.more) out.append(el("p", "note", "And " + plural(r.more, "more field") + "."));
    return out;
  };

  // A long path breaks after a dot.
  const path = (text) => el("code", "path", ...text.split(/(\.)/).flatMap((part) => (part === "." ? [part, el("wbr")] : part)));

  const field = (f) => {
    const values = el("span", "values");
    if (f.from) values.append(el("del", "", f.from));
    if (f.from && f.to) values.append(" ", sign("→"), " ");
    if (f.to) values.append(el("ins", "", f.to));
    if (f.values) values.append(" ", el("span", "note", "one of " + number.format(f.values) + " values"));
    return el("li", "", el("span", "what " + f.kind, f.kind), " ", path(f.path), " ", values);
  };

  const CLASSES = { "+": "add", "-": "del", "@": "hunk" };
  const diff = (text) => {
    const out = el("pre", "diff");
    out.tabIndex = 0;
    for (const line of text.replace(/\n$/, "").split("\n")) out.append(el("span", CLASSES[line[0]] || "same", line + "\n"));
    return out;
  };

  // Lines that were removed stand beside those that were added in their place.
  const sides = (text) => {
    const rows = el("tbody"), removed = [], added = [];
    const cell = (line) => el("td", line === undefined ? "none" : CLASSES[line[0]] || "same", line && line.slice(1));
    const flush = () => {
      while (removed.length || added.length) rows.append(el("tr", "", cell(removed.shift()), cell(added.shift())));
    };
    for (const line of text.replace(/\n$/, "").split("\n")) {
      if (line[0] === "-") removed.push(line);
      else if (line[0] === "+") added.push(line);
      else {
        flush();
        if (line[0] === "@") {
          const hunk = el("td", "hunk", line);
          hunk.colSpan = 2;
          rows.append(el("tr", "", hunk));
        } else rows.append(el("tr", "", cell(line), cell(line)));
      }
    }
    flush();
    return el("table", "diff sides", el("thead", "", el("tr", "", el("th", "", "Before"), el("th", "", "After"))), rows);
  };
  const sideBySide = () => id("beside").getAttribute("aria-pressed") === "true";

  const objects = (members) => {
    const all = el("ul", "members"), button = el("button", "link");
    let at = 0;
    const add = () => {
      for (const m of members.slice(at, at + MEMBERS)) all.append(el("li", "", display(m), ...(m[4] || []).flatMap((f) => [" ", el("span", "own", f)])));
      at += MEMBERS;
      button.hidden = at >= members.length;
      button.textContent = plural(members.length - at, "more object");
    };
    button.type = "button";
    button.addEventListener("click", add);
    add();
    return [el("h4", "", plural(members.length, "object")), all, button];
  };

  // --- what the user does ---
  const opened = () => list.querySelectorAll("details.change");
  const openAll = () => { for (const d of opened()) { d.fill(); d.open = true; } };
  let waiting;
  form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 120); });
  form.addEventListener("reset", () => setTimeout(filter));
  form.addEventListener("submit", (e) => { e.preventDefault(); clearTimeout(waiting); filter(); });
  id("open").addEventListener("click", openAll);
  id("beside").addEventListener("click", (e) => {
    e.target.setAttribute("aria-pressed", String(!sideBySide()));
    for (const d of opened()) {
      if (d.childElementCount < 2) continue;
      d.lastChild.remove();
      d.fill();
    }
  });
  id("close").addEventListener("click", () => { for (const d of opened()) d.open = false; });
  more.addEventListener("click", () => {
    const first = list.childElementCount;
    show();
    tell(Number(count.dataset.objects));
    list.children[first].querySelector("summary").focus();
  });
  document.addEventListener("keydown", (e) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName);
    if (typing || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "/") {
      e.preventDefault();
      form.elements.text.focus();
    }
    if (e.key === "j" || e.key === "k") {
      const rows = [...list.querySelectorAll("summary")], at = rows.indexOf(document.activeElement.closest(".change")?.firstElementChild);
      rows[Math.max(0, Math.min(rows.length - 1, at + (e.key === "j" ? 1 : -1)))]?.focus();
    }
  });
  for (const name of document.querySelectorAll("[data-filter]")) {
    const button = el("button", "link", name.textContent);
    button.type = "button";
    button.title = "Show only these changes";
    button.addEventListener("click", () => {
      form.elements[name.dataset.filter].value = name.dataset.value;
      filter();
      id("changes").scrollIntoView();
      form.elements[name.dataset.filter].focus({ preventScroll: true });
    });
    name.replaceChildren(button);
  }

  // What is shown is printed in full, and folded again afterwards.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const d of folded) { if (d.fill) d.fill(); d.open = true; }
  });
  addEventListener("afterprint", () => { for (const d of folded) d.open = false; });

  id("static-note").remove();
  form.hidden = false;
  filter();
  performance.mark("ready");
})();
