// Settling doubts without the mouse: Enter says that a text is right and goes on, Escape leaves it in doubt.
const form = document.querySelector("form[data-review]");
const texts = form ? [...form.querySelectorAll("input[type=text]")] : [];

function checkOf(text) {
  return text.closest("fieldset").querySelector("input[type=checkbox]");
}

function go(from, step) {
  const at = texts.indexOf(from) + step;
  if (at >= 0 && at < texts.length) {
    texts[at].focus();
    texts[at].select();
  } else if (at >= texts.length) {
    form.querySelector("button[type=submit]").focus();
  }
}

if (form) {
  form.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit();
      return;
    }
    const text = event.target;
    if (!texts.includes(text)) return;
    if (event.key === "Enter") {
      event.preventDefault();
      checkOf(text).checked = true;
      go(text, 1);
    } else if (event.key === "Escape") {
      event.preventDefault();
      text.value = text.defaultValue;
      checkOf(text).checked = false;
      go(text, 1);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      go(text, event.key === "ArrowDown" ? 1 : -1);
    }
  });
  form.addEventListener("input", (event) => {
    const text = event.target;
    if (texts.includes(text)) checkOf(text).checked = text.value !== text.defaultValue;
  });
  texts[0]?.focus();
  texts[0]?.select();
}
