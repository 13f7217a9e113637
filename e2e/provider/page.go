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

// pages ask a person for a user name, and for nothing else.
type pages struct {
	store    *store
	callback func(ctx context.Context, id string) string
}

// form asks for a user, and for a code if the address does not say it.
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

// login is where the authorization endpoint sends people.
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

// device is where a person types the code that a device shows.
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
