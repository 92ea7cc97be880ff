// Light, dark, or as the system says; kept in this browser.
const root = document.documentElement;
const button = document.querySelector("[data-theme-button]");
const next = { "": "dark", dark: "light", light: "" };
const words = { "": "Theme: system", dark: "Theme: dark", light: "Theme: light" };

function kept() {
  try {
    return localStorage.getItem("docferry-theme") ?? "";
  } catch {
    return "";
  }
}

function show(theme) {
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
  if (button) button.textContent = words[theme];
}

let theme = kept() in next ? kept() : "";
show(theme);
if (button) {
  button.hidden = false;
  button.addEventListener("click", () => {
    theme = next[theme];
    show(theme);
    try {
      localStorage.setItem("docferry-theme", theme);
    } catch {
      // A browser that keeps nothing shows it until the next page.
    }
  });
}
