package main

import "github.com/zitadel/oidc/v3/pkg/oidc"

// user is a user who can log in.
type user struct {
	groups []string
}

// users maps the names of all users to the users. The name is also the subject in
// tokens.
func users() map[string]user {
	return map[string]user{
		"alice": {groups: []string{"dev", "ops"}},
		"bob":   {groups: []string{"audit"}},
	}
}

// claims returns the claims of a user in every token, except the subject. The groups
// are there twice: as groups, and nested in realm, as Keycloak nests them.
func claims(name string) map[string]any {
	groups := users()[name].groups
	if groups == nil {
		groups = []string{}
	}
	return map[string]any{
		"email":          name + "@example.com",
		"email_verified": true,
		"groups":         groups,
		"realm":          map[string]any{"groups": groups},
	}
}

// fill sets the claims of a user in the answer of the userinfo endpoint.
func fill(info *oidc.UserInfo, name string) {
	info.Subject = name
	info.PreferredUsername = name
	for key, value := range claims(name) {
		switch key {
		case "email":
			info.Email = value.(string)
		case "email_verified":
			info.EmailVerified = true
		default:
			info.AppendClaims(key, value)
		}
	}
}
