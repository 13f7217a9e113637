package catalogue_test

import (
	"errors"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/v1/catalogue"
	"github.com/sluicegw/sluice/graph/v1/model"
)

func network(t testing.TB) backend.Kind {
	t.Helper()
	for _, k := range catalogue.Kinds() {
		if k.Name == "Network" {
			return k
		}
	}
	t.Fatal("no Network")
	return backend.Kind{}
}

func stored(json string) *backend.Resource {
	return &backend.Resource{
		Key:  backend.Key{Kind: "Network", Namespace: "default", Name: "net-a"},
		Body: backend.EncodeBody([]byte(json)),
	}
}

func TestTheServiceAcceptsEveryDescriptor(t *testing.T) {
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := service.New(service.Config{Kinds: catalogue.Kinds(), Store: store}); err != nil {
		t.Error(err)
	}
}

func TestAStoredBodyBecomesTheValueOfItsKind(t *testing.T) {
	r := stored(`{"subKind": "s", "version": "v1", "metadata": {"generation": 3, "labels": {"b": "2", "a": "1"}},
		"spec": {"managementPolicy": "unmanaged", "cloudCredentialsRef": {"cloudName": "c", "secretName": "s"}, "resource": {"tags": []}}, "status": null}`)
	obj, err := network(t).Decode(r)
	if err != nil {
		t.Fatal(err)
	}
	n, ok := obj.(*model.Network)
	if !ok {
		t.Fatalf("%T", obj)
	}
	if n.ID != service.GlobalID(r.Key) || n.Kind != "Network" || *n.SubKind != "s" || n.Version != "v1" || n.Stored != r || n.Status != nil {
		t.Errorf("%+v", n)
	}
	if n.Metadata.Generation != 3 || n.Metadata.Labels[0].Key != "a" || *n.Metadata.Namespace != "default" {
		t.Errorf("%+v", n.Metadata)
	}
	if *n.Spec.ManagementPolicy != model.ManagementPolicyUnmanaged || n.Spec.Resource.Tags == nil || n.Spec.Import != nil {
		t.Errorf("%+v", n.Spec)
	}
}

func TestABodyThatBreaksTheTypesIsUnreadable(t *testing.T) {
	decode := network(t).Decode
	for name, body := range map[string]string{
		"no JSON":        `{`,
		"no spec":        `{"version": "v1"}`,
		"a null spec":    `{"spec": null}`,
		"a wrong spec":   `{"spec": []}`,
		"a wrong field":  `{"spec": {"resource": {"mtu": "x"}}}`,
		"a wrong status": `{"spec": {}, "status": {"id": 5}}`,
		"a large number": `{"spec": {"resource": {"mtu": 4294967296}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if obj, err := decode(stored(body)); !errors.Is(err, backend.ErrUnreadable) || obj != nil {
				t.Errorf("%v, %v", obj, err)
			}
		})
	}
	if _, err := decode(&backend.Resource{Body: []byte("?{}")}); !errors.Is(err, backend.ErrUnreadable) {
		t.Errorf("another codec: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"version": "v1", "metadata": {"generation": 1}, "spec": {"cloudCredentialsRef": {"cloudName": "c", "secretName": "s"}}}`)
	f.Add(`{"spec": {"resource": {"tags": [null]}}, "status": {"conditions": [null]}}`)
	decode := network(f).Decode
	f.Fuzz(func(t *testing.T, body string) {
		obj, err := decode(stored(body))
		if (obj == nil) != errors.Is(err, backend.ErrUnreadable) {
			t.Errorf("%v, %v", obj, err)
		}
	})
}
