package main

import "github.com/zitadel/oidc/v3/pkg/oidc"

// user is somebody who can log in; the subject is the name.
type user struct {
	groups []string
}

// users are all who can log in.
func users() map[string]user {
	return map[string]user{
		"alice": {groups: []string{"dev", "ops"}},
		"bob":   {groups: []string{"audit"}},
	}
}

// claims are what every token says of a user besides the subject. The groups stand
// there twice: as `groups`, and nested as Keycloak nests them.
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

// fill says of a user what the claims of an ID token say.
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
