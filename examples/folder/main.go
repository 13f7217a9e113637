// Command folder is a small controller, by the rules of docs/controllers.md. It keeps a file for each Network in a
// folder that exists. The file has the spec as it was written, without defaults.
//
//	go run ./examples/folder FOLDER
//
// SLUICE_SERVER is the address of the gateway, and SLUICE_TOKEN a token if the gateway identifies its callers.
// folder.mjs is the same controller in JavaScript.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/sluicegw/sluice/graph/client"
)

const finalizer = "example.org/folder"

const read = `query ($namespace: String!, $name: String!) {
  network(namespace: $namespace, name: $name) {
    metadata { name uid revision generation deletionRequestedAt finalizers }
    specJSON
    status { conditions { type status observedGeneration lastTransitionTime } }
    dependencies { nodes { state } }
    blockedBy(first: 1) { nodes { name } hiddenCount }
  }
}`

type network struct {
	Metadata     client.Metadata
	Spec         json.RawMessage `json:"specJSON"`
	Status       *struct{ Conditions []client.Condition }
	Dependencies struct{ Nodes []struct{ State string } }
	BlockedBy    struct {
		Nodes       []struct{ Name string }
		HiddenCount int
	}
}

type controller struct {
	gateway *client.Client
	kind    client.Kind
	folder  string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := controller{folder: os.Args[1]}
	if err := c.run(ctx); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func (c *controller) run(ctx context.Context) (err error) {
	token := client.FixedToken(os.Getenv("SLUICE_TOKEN"))
	c.gateway, err = client.New(client.Config{Server: os.Getenv("SLUICE_SERVER"), Token: token})
	if err != nil {
		return err
	}
	c.kind, err = c.gateway.Kind(ctx, "Network")
	if err != nil {
		return err
	}
	if _, err := c.gateway.ControlKind(ctx, "Network", true); err != nil {
		return err
	}
	networks := client.ChangesRequest{Kind: c.kind, Snapshot: true, NamesOnly: true}
	for change, err := range c.gateway.Changes(ctx, networks) {
		if err != nil {
			return err
		}
		if r := change.Resource; r != nil {
			c.insist(ctx, *r.Metadata.Namespace, r.Metadata.Name)
		}
	}
	return nil
}

// insist repeats the step of a Network until it succeeds. All others wait meanwhile: examples/controller has a queue.
func (c *controller) insist(ctx context.Context, namespace, name string) {
	for pause := 50 * time.Millisecond; ctx.Err() == nil; pause = min(2*pause, 10*time.Second) {
		err := c.step(ctx, namespace, name)
		if err == nil {
			return
		}
		log.Printf("%s/%s is tried again: %v", namespace, name, err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// step brings the file of a Network into the state that the Network asks for, and reports that. Each change of the
// Network leads here, also the report itself. This ends, since an equal status is no change.
func (c *controller) step(ctx context.Context, namespace, name string) error {
	var got struct{ Network *network }
	err := c.gateway.Do(ctx, read, map[string]any{"namespace": namespace, "name": name}, &got)
	if err != nil || got.Network == nil {
		return err
	}
	n := got.Network
	m := n.Metadata
	file := filepath.Join(c.folder, m.UID+".json")
	hold := func(add, remove []string) error {
		m.Revision, err = c.gateway.PatchMetadata(ctx, client.MetadataPatch{
			Kind: c.kind, Namespace: namespace, Name: name, ExpectedRevision: m.Revision,
			AddFinalizers: add, RemoveFinalizers: remove,
		})
		return err
	}
	held := slices.Contains(m.Finalizers, finalizer)
	if m.DeletionRequestedAt != nil {
		blocked := len(n.BlockedBy.Nodes) > 0 || n.BlockedBy.HiddenCount > 0
		if !held || len(m.Finalizers) > 1 || blocked {
			return nil
		}
		if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
			return err
		}
		return hold(nil, []string{finalizer})
	}
	for _, d := range n.Dependencies.Nodes {
		if d.State != "BOUND" {
			return nil
		}
	}
	if !held {
		if err := hold([]string{finalizer}, nil); err != nil {
			return err
		}
	}
	if err := os.WriteFile(file, n.Spec, 0o600); err != nil {
		return err
	}
	return c.report(ctx, n, namespace, m.Revision)
}

// report writes the status. The time of a condition stays unless its status changes.
func (c *controller) report(ctx context.Context, n *network, namespace, revision string) error {
	condition := func(of, status, message string) map[string]any {
		since := time.Now().UTC().Format(time.RFC3339)
		if n.Status != nil {
			for _, before := range n.Status.Conditions {
				if before.Type == of && before.Status == status {
					since = before.LastTransitionTime
				}
			}
		}
		return map[string]any{
			"type": of, "status": status, "reason": "Success", "message": message,
			"observedGeneration": n.Metadata.Generation, "lastTransitionTime": since,
		}
	}
	_, err := c.gateway.UpdateStatus(ctx, client.StatusRequest{
		Kind: c.kind, Namespace: namespace, Name: n.Metadata.Name, ExpectedRevision: revision,
		Status: map[string]any{"id": n.Metadata.UID, "conditions": []any{
			condition("Available", "True", "The file is there"),
			condition("Progressing", "False", "The file is up to date"),
		}},
	})
	return err
}
