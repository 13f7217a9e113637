package resource

import (
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/graph/client"
)

// Key identifies a resource.
type Key struct{ Kind, Namespace, Name string }

func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name
}

// KeyOf returns the key of a resource.
func KeyOf(r *client.Resource) Key {
	return Key{Kind: r.Kind, Namespace: output.OrEmpty(r.Metadata.Namespace), Name: r.Metadata.Name}
}

// KeyOfApplied returns the key of an applied resource; zero if the answer does not have it.
func KeyOfApplied(a *client.Applied) Key {
	switch {
	case a.Resource != nil:
		return KeyOf(a.Resource)
	case a.Preview != nil:
		return Key{Kind: a.Preview.Kind, Namespace: output.OrEmpty(a.Preview.Namespace), Name: a.Preview.Name}
	}
	return Key{}
}
