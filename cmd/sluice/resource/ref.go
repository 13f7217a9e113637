// Package resource parses the arguments of commands that name kinds and resources.
package resource

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/graph/client"
)

func InNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return fmt.Sprintf(" in namespace %q", namespace)
}

// Ref identifies a resource that is named on a command line, or selected by labels.
type Ref struct {
	Kind client.Kind
	// Namespace is empty for GLOBAL kinds.
	Namespace, Name string
	// Revision is the revision at which the resource had the labels; empty if it was not selected by labels.
	Revision string
}

// NewRef returns the resource with a name. An empty namespace means the default namespace.
func NewRef(k client.Kind, namespace, name string) Ref {
	return Ref{Kind: k, Namespace: NamespaceOf(k, namespace), Name: name}
}

// NamespaceOf returns the namespace of resources of a kind: the given one, the default one if that is empty, or none
// for a GLOBAL kind.
func NamespaceOf(k client.Kind, namespace string) string {
	if k.Scope == "GLOBAL" {
		return ""
	}
	return cmp.Or(namespace, client.DefaultNamespace)
}

// Key returns the key of the resource.
func (s Ref) Key() Key { return Key{Kind: s.Kind.Name, Namespace: s.Namespace, Name: s.Name} }

// AccessTarget returns the resource as a target of rights.
func (s Ref) AccessTarget() client.AccessTarget {
	return client.AccessTarget{Kind: s.Kind.Name, Namespace: s.Namespace, Name: s.Name}
}

// GetExisting returns a resource. It returns an error if the resource does not exist.
func GetExisting(ctx context.Context, c *client.Client, s Ref, format client.Format) (*client.Resource, error) {
	r, err := c.Get(ctx, s.Kind, s.Namespace, s.Name, format)
	if err == nil && r == nil {
		err = s.Absent()
	}
	return r, err
}

// Absent returns the error for a resource that does not exist.
func (s Ref) Absent() error {
	return exit.NotFound(fmt.Errorf("%s %q does not exist%s (NOT_FOUND)",
		s.Kind.Name, s.Name, InNamespace(s.Namespace)))
}

// ReadRefs parses arguments of the form KIND NAME... or KIND/NAME...
func ReadRefs(ctx context.Context, c *client.Client, namespace string, args []string) ([]Ref, error) {
	wrong := exit.Usage(errors.New("name the resources as KIND NAME or as KIND/NAME"))
	if len(args) == 0 {
		return nil, wrong
	}
	targets, err := ReadTargets(ctx, c, args)
	if err != nil {
		return nil, err
	}
	var out []Ref
	for _, t := range targets {
		if len(t.Names) == 0 {
			return nil, wrong
		}
		for _, name := range t.Names {
			out = append(out, NewRef(t.Kind, namespace, name))
		}
	}
	return out, nil
}

// ReadRef is like ReadRefs for a command with exactly one resource.
func ReadRef(ctx context.Context, c *client.Client, namespace string, args []string) (Ref, error) {
	list, err := ReadRefs(ctx, c, namespace, args)
	if err == nil && len(list) > 1 {
		err = exit.Usage(errors.New("one resource is wanted: KIND NAME or KIND/NAME"))
	}
	if err != nil {
		return Ref{}, err
	}
	return list[0], nil
}
