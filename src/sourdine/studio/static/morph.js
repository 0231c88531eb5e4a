// @ts-check
// New content in the place of old, element by element: what somebody is typing in, or has open, stays.

/**
 * @param {Element} old
 * @param {string} html
 */
export function morph(old, html) {
  const made = document.createElement(old.tagName);
  made.innerHTML = html;
  children(old, made);
}

/**
 * @param {Node} old
 * @param {Node} made
 */
function children(old, made) {
  const keyed = new Map();
  for (const node of old.childNodes) {
    if (node instanceof Element && node.id) keyed.set(node.id, node);
  }
  let at = old.firstChild;
  for (const want of [...made.childNodes]) {
    let node = want instanceof Element && want.id ? keyed.get(want.id) : null;
    if (!node && at && alike(at, want) && !(at instanceof Element && at.id)) node = at;
    if (node && alike(node, want)) {
      if (node === at) at = at.nextSibling;
      else old.insertBefore(node, at);
      update(node, want);
    } else {
      old.insertBefore(want, at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

/** @param {Node} one @param {Node} other */
function alike(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName;
}

/** @param {Node} old @param {Node} made */
function update(old, made) {
  if (!(old instanceof Element) || !(made instanceof Element)) {
    if (old.nodeValue !== made.nodeValue) old.nodeValue = made.nodeValue;
    return;
  }
  const was = old.getAttribute("value");
  const kept = old instanceof HTMLDetailsElement ? ["open"] : ["aria-current"];
  for (const { name } of [...old.attributes]) {
    if (!made.hasAttribute(name) && !kept.includes(name)) old.removeAttribute(name);
  }
  for (const { name, value } of made.attributes) {
    if (old.getAttribute(name) !== value && !kept.includes(name)) old.setAttribute(name, value);
  }
  const typing = old === document.activeElement;
  if (old instanceof HTMLTextAreaElement && made instanceof HTMLTextAreaElement) {
    if (!typing && (shows(old) || old.defaultValue !== made.defaultValue)) old.value = made.value;
    old.defaultValue = made.defaultValue;
    return;
  }
  if (old instanceof HTMLInputElement && made instanceof HTMLInputElement) {
    if (old.type === "checkbox" || old.type === "radio") old.checked = made.checked;
    else if (!typing && (shows(old) || was !== made.getAttribute("value"))) old.value = made.value;
    return;
  }
  if (made.hasAttribute("data-keep")) return;
  const chosen = old instanceof HTMLSelectElement ? old.value : "";
  children(old, made);
  if (!(old instanceof HTMLSelectElement) || !(made instanceof HTMLSelectElement) || typing) return;
  const there = [...old.options].some((option) => option.value === chosen);
  old.value = shows(old) || !there ? made.value : chosen;
}

/**
 * Whether a field shows what is kept. Others belong to a form that is not sent yet, or was refused: what was
 * typed into them stays, to be mended.
 * @param {HTMLElement} field
 */
function shows(field) {
  return field.dataset.set !== undefined || field.dataset.act !== undefined;
}
