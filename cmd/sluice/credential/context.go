// Package credential stores how a user reaches gateways, in files that only the user can read. It stores contexts with
// their credentials, and the tokens of logins with OpenID Connect issuers. It also gets and refreshes these tokens. A
// context has a name, as in kubectl.
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

// Context is a gateway, with the credentials of the user.
type Context struct {
	// Server is the base URL of the gateway. Default: the server on the command line.
	Server string `yaml:"server,omitempty"`
	// Namespace is the namespace of commands without a namespace. Default: "default".
	Namespace string `yaml:"namespace,omitempty"`
	Access    `yaml:",inline"`
}

// File has the contents of the file of contexts.
type File struct {
	// Current is the name of the context that commands use if none is given.
	Current  string             `yaml:"current,omitempty"`
	Contexts map[string]Context `yaml:"contexts,omitempty"`
}

// contextName matches the name of a context.
var contextName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,127}$`)

// CheckName returns an error if a name is not valid for a context.
func CheckName(name string) error {
	if !contextName.MatchString(name) {
		return fmt.Errorf(
			"context: %q is no name: 1 to 128 letters, digits and ._@- are accepted, a letter or digit first",
			name,
		)
	}
	return nil
}

// Find returns the context with a name.
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

// Names returns the names of all contexts, in order.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.Contexts)) }

// validate returns an error that joins all problems with the file.
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

// Validate returns an error that joins all problems with the credentials.
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

// NoCredential is the [Access.Kind] of a context without a credential. There may still be a login.
const NoCredential = "none"

// Kind returns a word for the kind of credential.
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

// Files maps the names of flags to the fields that have paths.
func (a *Access) Files() map[string]*string {
	return map[string]*string{
		"ca":          &a.CA,
		"client-cert": &a.ClientCert,
		"client-key":  &a.ClientKey,
		"token-file":  &a.TokenFile,
	}
}

// under makes relative paths absolute. folder is the folder to which they are relative.
func (a *Access) under(folder string) {
	for _, path := range a.Files() {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(folder, *path)
		}
	}
}
