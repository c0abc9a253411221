package ui

import (
	"net/http"
	"strings"
)

// theme is how the pages look: light, dark, or empty for the system's choice.
type theme string

const themeCookie = "earshot-theme"

func themeOf(r *http.Request) theme {
	c, err := r.Cookie(themeCookie)
	if err != nil || c.Value != "light" && c.Value != "dark" {
		return ""
	}
	return theme(c.Value)
}

// Name names the theme.
func (t theme) Name() string {
	if t == "" {
		return "auto"
	}
	return string(t)
}

// Next is the theme that the button picks.
func (t theme) Next() theme {
	switch t {
	case "":
		return "light"
	case "light":
		return "dark"
	}
	return "auto"
}

// setTheme keeps the theme that a form picked, and goes back to the page with the form. A cookie, so
// that the page has its colors before any script runs.
func setTheme(w http.ResponseWriter, r *http.Request) {
	c := &http.Cookie{Name: themeCookie, Value: r.PostFormValue("to"), Path: "/", MaxAge: 365 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if c.Value != "light" && c.Value != "dark" {
		c.Value, c.MaxAge = "", -1
	}
	http.SetCookie(w, c)
	back := r.PostFormValue("back")
	if !strings.HasPrefix(back, "/") || strings.HasPrefix(back, "//") || strings.ContainsAny(back, "\\\r\n\t") {
		back = "/"
	}
	http.Redirect(w, r, back, http.StatusSeeOther)
}
