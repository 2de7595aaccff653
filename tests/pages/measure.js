// What a page measures of itself. Read and returned as JSON by test_report_pages.py.
() => {
  const root = document.documentElement, found = {};
  const shown = (element) => element.getClientRects().length > 0 && getComputedStyle(element).visibility !== "hidden";
  const hiddenForEyes = (element) => element.closest("thead") && getComputedStyle(element.closest("thead")).position === "absolute";
  const inScroller = (element) => element.closest(".wide") !== null;
  const name = (element) => `${element.tagName.toLowerCase()}.${element.className} "${element.textContent.trim().slice(0, 40)}"`;
  const all = [...document.body.querySelectorAll("*")].filter((element) => shown(element) && !hiddenForEyes(element));

  found.width = [root.scrollWidth, root.clientWidth];
  // Beyond the edges of the window, where the page itself does not scroll.
  found.beyond = all.filter((element) => !inScroller(element) && (element.getBoundingClientRect().right > root.clientWidth + 0.5 || element.getBoundingClientRect().left < -0.5)).map(name);
  // Wider or higher than the box that shows it.
  found.clipped = all.filter((element) => !element.classList.contains("wide") && getComputedStyle(element).display !== "inline" && getComputedStyle(element).overflowX !== "visible"
    && (element.scrollWidth > element.clientWidth + 1 || element.scrollHeight > element.clientHeight + 1)).map(name);
  found.scrollers = [...document.querySelectorAll(".wide")].map((element) => ({ width: [element.scrollWidth, element.clientWidth], focus: element.tabIndex === 0, name: element.getAttribute("aria-label") || "" }));

  const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
  const opaque = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const [r, g, b, a = 1] = numbers(getComputedStyle(at).backgroundColor);
      if (a > 0) return [r, g, b];
    }
    return matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255];
  };
  const light = (rgb) => rgb.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const weak = [];
  let texts = 0;
  for (const element of all) {
    const styles = [];
    if ([...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())) styles.push(getComputedStyle(element));
    const before = getComputedStyle(element, "::before");
    if (before.content !== "none" && before.content !== "normal") styles.push(before);
    for (const style of styles) {
      texts += 1;
      const ratio = contrast(numbers(style.color).slice(0, 3), opaque(element));
      if (ratio < 4.5) weak.push(`${ratio.toFixed(2)} ${name(element)}`);
    }
  }
  found.texts = texts;
  found.weak = weak;
  found.small = all.filter((element) => parseFloat(getComputedStyle(element).fontSize) < 12 && [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())).map(name);

  found.language = root.lang;
  found.headings = [...document.querySelectorAll("h1, h2, h3, h4")].map((element) => Number(element.tagName[1]));
  found.tables = [...document.querySelectorAll("table")].map((table) => ({
    caption: table.caption ? table.caption.textContent.trim() : "",
    loose: [...table.querySelectorAll("th")].filter((head) => !["col", "row"].includes(head.scope)).length,
  }));
  found.marks = [...document.querySelectorAll(".mark")].filter((mark) => !mark.textContent.trim() || getComputedStyle(mark, "::before").content === "none").length;
  found.links = [...document.querySelectorAll("a[href^='#']")].map((link) => link.getAttribute("href").slice(1)).filter((id) => !document.getElementById(id));
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  found.twice = ids.filter((id, at) => ids.indexOf(id) !== at);
  found.active = document.querySelectorAll("script, img, iframe, object, embed, link, form, input, video, audio, [onerror], [onclick], [src], a[href^='javascript'], a[href^='http']").length;
  found.uncut = ["tr", "li", "article"].filter((tag) => document.querySelector(tag) && getComputedStyle(document.querySelector(tag)).breakInside !== "avoid");
  return found;
}
