"use strict";
(() => {
  // Nothing here makes markup of text: every string becomes a text node.
  const READ = "What was read of the reply";
  const SHOWN = 20000, MORE = 400000, PAGE = 100;
  // But for the two joiners, which emoji and Indic scripts are made with, no format character shows.
  const STEERS = /(?![\u200c\u200d])[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Cf}]/gu;
  const SIGNS = {"right": "✓", "wrong": "✗", "cut off": "✂", "error": "!",
    "lost": "−", "gained": "+", "both right": "✓", "both wrong": "✗"};
  const at = (id) => document.getElementById(id);
  const data = JSON.parse(at("index").textContent);
  const [ID, REPEAT, PART, OUTCOME, STRATUM, RULE, GIVEN, WORDS, PROMPT] = data.rows.length
    ? data.rows[0].keys() : [];
  const asked = new Set(data.rows.filter((row) => row[REPEAT] > 0).map((row) => row[PART]));
  const repeats = (row) => asked.has(row[PART]);  // of a part that asks each question several times
  const pair = data.kind === "pair";

  // Blocks of texts are read when one of them is wanted.
  const blocks = (name) => {
    const places = document.querySelectorAll("script." + name), read = [];
    return (n) => read[n] || (read[n] = JSON.parse(places[n].textContent));
  };
  const recordBlock = blocks("records"), promptBlock = blocks("prompts");
  const record = (n) => recordBlock(Math.floor(n / data.block))[n % data.block];
  const prompt = (n) => promptBlock(Math.floor(n / data.prompt_block))[n % data.prompt_block];

  const make = (tag, name, ...inside) => {
    const node = document.createElement(tag);
    if (name) node.className = name;
    node.append(...inside);
    return node;
  };
  const code = (c) => "U+" + c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
  const plain = (text) => text.replace(STEERS, (c) => (c === "\n" || c === "\t" ? c : "⟦" + code(c) + "⟧"));

  // A text with what would steer the eye shown as marks; very many marks are written as letters.
  const visible = (text) => {
    const found = text.match(STEERS);
    if (!found) return [text];
    if (found.filter((c) => c !== "\n" && c !== "\t").length > 500) return [plain(text)];
    const nodes = [];
    let from = 0;
    for (const match of text.matchAll(STEERS)) {
      if (match[0] === "\n" || match[0] === "\t") continue;
      nodes.push(text.slice(from, match.index), make("span", "control", code(match[0])));
      from = match.index + match[0].length;
    }
    nodes.push(text.slice(from));
    return nodes;
  };
  const bdi = (text) => {
    const node = make("bdi", "", ...visible(String(text)));
    node.dir = "auto";
    return node;
  };

  // A block of text; what is long comes piece by piece. Programs keep their lines.
  const block = (text, program) => {
    const pieces = Array.isArray(text) ? text : [text];
    const whole = make("bdi", "");
    whole.dir = program ? "ltr" : "auto";
    const node = make("pre", program ? "text code" : "text", whole);
    if (program) {
      node.tabIndex = 0;
      node.setAttribute("role", "region");
      node.setAttribute("aria-label", program);
    }
    const waiting = [];
    let room = SHOWN;
    const put = (piece) => {
      const [kind, value] = Array.isArray(piece) ? piece : ["", piece];
      if (kind === "cut") {
        const words = value.toLocaleString("en") + " characters are only in the raw files";
        whole.append(make("span", "left-out", "⟨" + words + "⟩"));
      } else if (kind === "mark") {
        whole.append(make("mark", "", ...visible(value)));
      } else {
        let end = Math.min(value.length, Math.max(room, 0));
        if (end < value.length && /[\ud800-\udbff]/.test(value.charAt(end - 1))) end -= 1;
        whole.append(...visible(value.slice(0, end)));
        room -= end;
        return value.slice(end);
      }
      return "";
    };
    const more = make("button", "more");
    const go = () => {
      while (waiting.length) {
        const rest = put(waiting[0]);
        if (rest) { waiting[0] = rest; break; }
        waiting.shift();
      }
      const left = waiting.reduce((sum, p) => sum + (typeof p === "string" ? p.length : 0), 0);
      more.hidden = !waiting.length;
      more.textContent = "Show more (" + left.toLocaleString("en") + " characters left)";
    };
    waiting.push(...pieces);
    go();
    more.type = "button";
    more.addEventListener("click", () => { room = MORE; go(); });
    return more.hidden ? [node] : [node, more];
  };

  const folded = (title, open, ...inside) => {
    const node = make("details", "fold", make("summary", "", title), ...inside);
    node.open = open;
    return node;
  };
  const chip = (word, said) => {
    const sign = make("span", "", SIGNS[word] || "");
    sign.setAttribute("aria-hidden", "true");
    return make("span", "chip o-" + word.replace(" ", "-"), sign, " " + (said || word));
  };

  // A name made of words may break between them, and nowhere else while there is room.
  const breakable = (name) => {
    const node = make("bdi", "");
    node.dir = "auto";
    for (const piece of name.split(/(?<=[:_])/)) node.append(...visible(piece), make("wbr", ""));
    return node;
  };

  const side = (one, name) => {
    const node = make("div", "side");
    const title = (text) => make(name ? "h5" : "h4", "piece", text);  // below the name of the side
    if (name) node.append(make("h4", "", bdi(name), " ", chip(one.outcome)));
    // What the table of instructions says is not said twice.
    const tabled = one.instructions && one.instructions.every(([,,, why]) => one.reason.includes(why));
    if (!tabled) node.append(make("p", "reason", bdi(one.reason)));
    if (one.note) node.append(make("p", "aside", one.note));
    if (one.instructions) {
      const rows = one.instructions.map(([id, strict, loose, why]) => make("tr", "",
        make("td", "", chip(strict ? "right" : "wrong", strict ? "followed" : "not followed")),
        make("th", "", breakable(id)),
        make("td", "", bdi(why), loose && !strict ? " (followed when read loosely)" : "")));
      node.append(make("table", "plain instructions", make("tbody", "", ...rows)));
    }
    for (const [title, values] of one.values || []) {
      if (!values.length) continue;
      const items = values.map((value) => make("li", "", bdi(value)));
      node.append(make("p", "label", title), make("ul", "values v-" + title.split(" ")[0], ...items));
    }
    if (one.code) node.append(title(READ), ...block(one.code, READ));
    if (one.text === "") node.append(title("Reply"), make("p", "aside", "(empty)"));
    else if (one.code && one.text) node.append(folded("The whole reply", false, ...block(one.text)));
    else if (one.text !== undefined) node.append(title("Reply"), ...block(one.text));
    if (one.reasoning) node.append(folded("Reasoning, from " + one.source, false, ...block(one.reasoning)));
    const facts = (one.facts || []).map(([what, value]) =>
      make("div", "", make("dt", "", bdi(data.names[what])), make("dd", "", bdi(value))));
    if (facts.length) node.append(folded("Numbers and settings", !pair, make("dl", "facts", ...facts)));
    return node;
  };

  // State: what is shown, kept in the address.
  const NAMES = ["part", "outcome", "stratum", "rule", "q", "id", "of", "repeat"];
  let state = {}, found = [], page = 0, open = -1;
  const fromAddress = () => {
    const hash = location.hash.slice(1);
    if (!hash.includes("=")) return null;
    const read = new URLSearchParams(hash);
    return Object.fromEntries(NAMES.filter((n) => read.get(n)).map((n) => [n, read.get(n)]));
  };
  const inWords = () => {
    const kept = NAMES.filter((n) => state[n]).map((n) => [n, state[n]]);
    return new URLSearchParams(kept).toString();
  };
  // Opening an answer from the list adds one entry to the browser's history, so that Back closes it;
  // moving on writes over it, and closing goes back, which leaves no entry behind.
  let returning = false;
  const entry = () => history.state || {};
  const toAddress = (opens) => {
    if (returning) return;  // what is shown then is written when the entry below is reached
    if (open < 0 && entry().opened) {
      returning = true;
      history.back();
      return;
    }
    const hash = inWords(), address = hash ? "#" + hash : location.href.split("#")[0];
    try {
      if (opens && !entry().opened) {
        history.scrollRestoration = "manual";
        history.replaceState({below: true}, "");
        history.pushState({opened: true}, "", address);
      } else {
        history.replaceState(history.state, "", address);
      }
    } catch {
      if (hash) location.hash = hash;
    }
  };

  const partPlace = () => data.parts.findIndex((part) => part.name === state.part);
  const strings = (value) => {
    if (typeof value === "string") return value;
    if (Array.isArray(value)) {
      if (value[0] === "mark") return value[1];
      return value[0] === "cut" ? "" : value.map(strings).join("");
    }
    return "";
  };
  const holds = (n, wanted) => {
    const row = data.rows[n];
    if (String(row[ID]).toLowerCase().includes(wanted)) return true;
    return record(n).some((one) => [one.text, one.reasoning, one.reason, one.code].some((text) =>
      text && strings(text).toLowerCase().includes(wanted)));
  };
  const search = () => {
    const part = partPlace(), outcome = data.outcomes.indexOf(state.outcome);
    const wanted = (state.q || "").trim().toLowerCase();
    found = [];
    data.rows.forEach((row, n) => {
      if (part >= 0 && row[PART] !== part) return;
      if (state.outcome === "changed" ? row[OUTCOME] > 1 : outcome >= 0 && row[OUTCOME] !== outcome) return;
      if (state.stratum && data.parts[row[PART]].order[row[STRATUM]] !== state.stratum) return;
      if (state.rule && data.rules[row[RULE]] !== state.rule) return;
      if (wanted && !holds(n, wanted)) return;
      found.push(n);
    });
  };

  const line = (n) => {
    const row = data.rows[n];
    const button = make("button", "row",
      chip(data.outcomes[row[OUTCOME]]),
      make("span", "id", bdi(row[ID]), repeats(row) ? " #" + (row[REPEAT] + 1) : ""),
      make("span", "where", data.parts[row[PART]].title),
      make("span", "given", bdi(row[GIVEN])),
      make("span", "words", bdi(row[WORDS])));
    button.type = "button";
    button.dataset.n = n;
    if (n === open) button.setAttribute("aria-current", "true");
    return make("li", "", button);
  };
  const showList = () => {
    const from = page * PAGE, shown = found.slice(from, from + PAGE);
    at("list").replaceChildren(...shown.map(line));
    at("list").start = from + 1;
    const all = data.rows.length.toLocaleString("en"), some = found.length.toLocaleString("en");
    const range = found.length > PAGE
      ? ", " + (from + 1).toLocaleString("en") + " to " + (from + shown.length).toLocaleString("en") : "";
    const rule = state.rule ? ", rule " + plain(state.rule) : "";
    const answers = data.rows.length === 1 ? " answer" : " answers";
    at("count").textContent = some + " of " + all + answers + (pair ? " in both runs" : "") + rule + range;
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    at("page-word").textContent = "page " + (page + 1).toLocaleString("en") + " of " + pages.toLocaleString("en");
    at("page-back").disabled = page === 0;
    at("page-on").disabled = page >= pages - 1;
    document.querySelector(".pages").hidden = pages === 1;
    at("nothing").hidden = found.length > 0 || !data.rows.length;
  };
  const fill = (select, any, words, chosen) => {
    const options = [["", any], ...words].map(([value, word]) => {
      const option = make("option", "", plain(word));
      option.value = value;
      return option;
    });
    select.replaceChildren(...options);
    select.value = chosen || "";
    if (select.selectedIndex < 0) select.value = "";
  };
  const showFilters = () => {
    const part = partPlace();
    fill(at("f-part"), "all", data.parts.map((p) => [p.name, p.title]), state.part);
    const words = data.outcomes.map((word) => [word, word]);
    if (pair) words.unshift(["changed", "lost or gained"]);
    fill(at("f-outcome"), "all", words, state.outcome);
    const strata = (part >= 0 ? [data.parts[part]] : data.parts).flatMap((p) => p.strata);
    fill(at("f-stratum"), "all", [...new Set(strata)].map((s) => [s, s]), state.stratum);
    if (at("f-search").value !== (state.q || "")) at("f-search").value = state.q || "";
  };

  // On a narrow screen an answer covers the page, and then nothing behind it can be reached.
  const narrow = matchMedia("(max-width: 60rem)");
  const BEHIND = "body > :not(main, script), main > :not(#answers), #answers > :not(#leaf), .list";
  const cover = () => {
    for (const node of document.querySelectorAll(BEHIND)) node.inert = open >= 0 && narrow.matches;
  };
  narrow.addEventListener("change", cover);

  const showOne = (focus) => {
    const box = at("one");
    cover();
    at("leaf").classList.toggle("opened", open >= 0);
    box.hidden = open < 0;
    for (const button of document.querySelectorAll("#list button")) {
      if (Number(button.dataset.n) === open) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
    if (open < 0) { box.replaceChildren(); return; }
    const row = data.rows[open], part = data.parts[row[PART]], sides = record(open);
    const close = make("button", "close", "Close");
    close.type = "button";
    close.addEventListener("click", () => shut());
    const stratum = row[STRATUM] >= 0 ? " · " + part.order[row[STRATUM]] : "";
    const repeat = repeats(row) ? " · answer " + (row[REPEAT] + 1) : "";
    const title = make("h3", "", bdi(row[ID]));
    title.tabIndex = -1;
    const head = make("div", "one-head", make("div", "", title,
      make("p", "sub", part.title, bdi(stratum), repeat, " · ", bdi(row[GIVEN]), " ",
        chip(data.outcomes[row[OUTCOME]]))), close);
    let put;
    if (row[PROMPT] >= 0) put = folded("Prompt", false, ...block(prompt(row[PROMPT])));
    else if (data.no_prompt[part.name]) put = make("p", "aside", ...visible(data.no_prompt[part.name]));
    const shown = pair
      ? make("div", "pair", ...sides.map((one, n) => side(one, (n ? "new: " : "base: ") + data.sides[n])))
      : side(sides[0]);
    box.replaceChildren(head, ...(put ? [put] : []), shown);
    box.scrollTop = 0;
    if (focus) title.focus({preventScroll: false});
  };

  const button = (n) => document.querySelector('#list button[data-n="' + n + '"]');
  const openOne = (n, focus) => {
    const opens = open < 0 && n >= 0;
    open = n;
    state.id = n >= 0 ? String(data.rows[n][ID]) : undefined;
    state.of = n >= 0 ? data.parts[data.rows[n][PART]].name : undefined;  // parts may share ids
    state.repeat = n >= 0 && repeats(data.rows[n]) ? String(data.rows[n][REPEAT]) : undefined;
    toAddress(opens);
    showOne(focus);
  };
  const shut = () => {
    const last = open;
    openOne(-1);
    const there = last >= 0 && button(last);
    if (there) there.focus();
  };
  const update = () => {
    page = 0;
    search();
    if (open >= 0 && !found.includes(open)) { open = -1; state.id = state.of = state.repeat = undefined; }
    if (open >= 0) page = Math.floor(found.indexOf(open) / PAGE);
    toAddress();
    showFilters();
    showList();
    showOne(false);
  };
  const turn = (to) => {
    page = to;
    showList();
    const first = at("list").querySelector("button");
    if (first) first.focus();
  };
  // One step down or up the list from the row in focus, else from the open one.
  const step = (by) => {
    const here = document.activeElement && document.activeElement.dataset.n;
    const from = here !== undefined ? found.indexOf(Number(here)) : found.indexOf(open);
    const to = from < 0 ? page * PAGE : from + by;
    if (to < 0 || to >= found.length) return;
    if (Math.floor(to / PAGE) !== page) { page = Math.floor(to / PAGE); showList(); }
    const covered = open >= 0 && narrow.matches;
    if (open >= 0) openOne(found[to], covered);
    if (!covered) button(found[to]).focus();
  };

  const start = () => {
    const read = fromAddress();
    if (read) {
      state = read;
    } else if (pair && data.rows.some((row) => row[OUTCOME] <= 1)) {
      state = {outcome: "changed"};
    }
    search();
    const n = state.id === undefined ? -1 : data.rows.findIndex((row) => String(row[ID]) === state.id
      && [undefined, data.parts[row[PART]].name].includes(state.of || state.part)
      && String(row[REPEAT]) === (state.repeat || "0"));
    open = n;
    if (open >= 0 && found.includes(open)) page = Math.floor(found.indexOf(open) / PAGE);
    showFilters();
    showList();
    showOne(false);
    if (read) at("answers").scrollIntoView();
  };

  const clear = () => { state = {}; open = -1; update(); at("f-part").focus(); };
  const set = (name) => (event) => {
    state[name] = event.target.value || undefined;
    if (name === "part") state.stratum = undefined;
    state.rule = undefined;
    update();
  };
  at("f-part").addEventListener("change", set("part"));
  at("f-outcome").addEventListener("change", set("outcome"));
  at("f-stratum").addEventListener("change", set("stratum"));
  let wait = 0;
  at("f-search").addEventListener("input", (event) => {
    clearTimeout(wait);
    wait = setTimeout(() => { state.q = event.target.value || undefined; update(); }, 120);
  });
  at("filters").addEventListener("submit", (event) => event.preventDefault());
  at("f-clear").addEventListener("click", clear);
  at("f-clear-too").addEventListener("click", clear);
  at("page-back").addEventListener("click", () => turn(page - 1));
  at("page-on").addEventListener("click", () => turn(page + 1));
  at("list").addEventListener("click", (event) => {
    const row = event.target.closest("button");
    if (row) openOne(Number(row.dataset.n), event.detail === 0 || narrow.matches);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const field = event.target.closest && event.target.closest("input, select, textarea");
    if (event.key === "Escape") {
      if (field === at("f-search") && field.value) {
        event.preventDefault();
        clearTimeout(wait);
        state.q = undefined;
        field.value = "";
        update();
      } else if (field) field.blur();
      else if (open >= 0) shut();
      return;
    }
    if (field) return;
    const inside = event.target.closest && event.target.closest("#list");
    const covered = open >= 0 && narrow.matches;
    if (event.key === "/") { event.preventDefault(); at("f-search").focus(); }
    else if (event.key === "n" && !covered && !at("page-on").disabled) turn(page + 1);
    else if (event.key === "p" && !covered && !at("page-back").disabled) turn(page - 1);
    else if (event.key === "j" || (inside && event.key === "ArrowDown")) { event.preventDefault(); step(1); }
    else if (event.key === "k" || (inside && event.key === "ArrowUp")) { event.preventDefault(); step(-1); }
  });
  // Back from an open answer, or its closing: the entry below takes on what is shown now.
  addEventListener("popstate", (event) => {
    if (!event.state || !event.state.below) return;
    const closed = returning;
    returning = false;
    if (closed) toAddress(open >= 0);
    else if (open >= 0) shut();
  });
  addEventListener("hashchange", () => {
    if (location.hash.slice(1) === inWords() || !fromAddress()) return;
    start();
    (open >= 0 ? at("one").querySelector("h3") : at("answers-h")).focus();
  });

  // On paper everything that is folded is open, but for the answers, which are not printed.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("main details:not([open])")];
    for (const one of closed) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of closed) one.open = false; });

  start();
  performance.mark("report-ready");
})();
