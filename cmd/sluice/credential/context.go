// Package credential keeps how a person reaches gateways, in files that only that person can read: contexts with
// their credentials, and the tokens of logins at OpenID Connect issuers, which it gets and refreshes.
// Contexts have names, as in kubectl.
package credential

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Context is a gateway and how to speak to it.
type Context struct {
	// Server is the gateway's base URL. Default: the server that the command line names.
	Server string `yaml:"server,omitempty"`
	// Namespace of commands that name none. Default: "default".
	Namespace string `yaml:"namespace,omitempty"`
	Access    `yaml:",inline"`
}

// File is the file of contexts.
type File struct {
	// Current names the context of commands that name none.
	Current  string             `yaml:"current,omitempty"`
	Contexts map[string]Context `yaml:"contexts,omitempty"`
}

// contextName matches the names that a context can have.
var contextName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,127}$`)

// CheckName reports why a context cannot have the name.
func CheckName(name string) error {
	if !contextName.MatchString(name) {
		return fmt.Errorf(
			"context: %q is no name: 1 to 128 letters, digits and ._@- are accepted, a letter or digit first",
			name,
		)
	}
	return nil
}

// Find returns a context by its name.
func (f *File) Find(name string) (Context, error) {
	c, ok := f.Contexts[name]
	if ok {
		return c, nil
	}
	known := "none"
	if len(f.Contexts) > 0 {
		known = strings.Join(f.Names(), ", ")
	}
	return c, fmt.Errorf("context: there is no such context as %q; known: %s", name, known)
}

// Names returns the names of all contexts in order.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.Contexts)) }

// validate returns every problem of the file.
func (f *File) validate() error {
	var errs []error
	for _, name := range f.Names() {
		if err := CheckName(name); err != nil {
			errs = append(errs, err)
		}
		c := f.Contexts[name]
		if err := c.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// Validate returns every problem of the credentials of a context.
func (a *Access) Validate() error {
	var errs []error
	if a.TokenFile != "" && len(a.TokenCommand) > 0 {
		errs = append(errs, errors.New("token-file, token-command: only one of them can be used"))
	}
	if len(a.TokenCommand) > 0 && a.TokenCommand[0] == "" {
		errs = append(errs, errors.New("token-command: the program has no name"))
	}
	if (a.ClientCert == "") != (a.ClientKey == "") {
		errs = append(errs, errors.New("client-cert, client-key: each needs the other"))
	}
	return errors.Join(errs...)
}

// NoCredential is the [Access.Kind] of a context without a credential; there may be a login.
const NoCredential = "none"

// Kind names the credential of the caller in a word.
func (a *Access) Kind() string {
	switch {
	case len(a.TokenCommand) > 0:
		return "command"
	case a.TokenFile != "":
		return "token file"
	case a.ClientCert != "":
		return "certificate"
	}
	return NoCredential
}

// Files returns the fields that are paths, by the names of their flags.
func (a *Access) Files() map[string]*string {
	return map[string]*string{
		"ca":          &a.CA,
		"client-cert": &a.ClientCert,
		"client-key":  &a.ClientKey,
		"token-file":  &a.TokenFile,
	}
}

// under makes the paths of files in a context absolute, which begin at a folder.
func (a *Access) under(folder string) {
	for _, path := range a.Files() {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(folder, *path)
		}
	}
}
