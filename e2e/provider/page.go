package main

import (
	"context"
	"html/template"
	"net/http"
)

const (
	loginPath  = "/login"
	devicePath = "/device"
)

// pages has the login pages. They ask for a user name and no password.
type pages struct {
	store    *store
	callback func(ctx context.Context, id string) string
}

// form is a page that asks for a code and a user name. Value is the code if it is known
// already.
type form struct{ Field, Value, Message string }

func (f form) write(w http.ResponseWriter, status int) {
	page := template.Must(template.New("form").Parse(`<!doctype html>
<title>Log in</title>
<p id="message">{{.Message}}</p>
<form method="post">
<label>Code <input name="{{.Field}}" value="{{.Value}}"></label>
<label>User <input name="user" autofocus></label>
<button type="submit">Log in</button>
</form>
`))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = page.Execute(w, f)
}

// login is the page to which the authorization endpoint redirects the browser.
func (p pages) login(w http.ResponseWriter, r *http.Request) {
	id, user := r.FormValue("id"), r.FormValue("user")
	if r.Method != http.MethodPost {
		form{Field: "id", Value: id}.write(w, http.StatusOK)
		return
	}
	if _, ok := users()[user]; !ok {
		form{Field: "id", Value: id, Message: "No such user."}.write(w, http.StatusForbidden)
		return
	}
	if err := p.store.finish(id, user); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	http.Redirect(w, r, p.callback(r.Context(), id), http.StatusFound)
}

// device is the page on which a user types the code that a device shows.
func (p pages) device(w http.ResponseWriter, r *http.Request) {
	code, user := r.FormValue("user_code"), r.FormValue("user")
	f := form{Field: "user_code", Value: code}
	if r.Method != http.MethodPost {
		f.write(w, http.StatusOK)
		return
	}
	if _, ok := users()[user]; !ok {
		f.Message = "No such user."
		f.write(w, http.StatusForbidden)
		return
	}
	if err := p.store.confirm(code, user); err != nil {
		f.Message = "No such code."
		f.write(w, http.StatusForbidden)
		return
	}
	form{Message: "You are logged in on the device."}.write(w, http.StatusOK)
}
