package write

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

// maxSelected is the maximum number of resources that one command may select by labels.
const maxSelected = 100_000

// selection selects resources of some kinds and namespaces by their labels.
type selection struct {
	std    terminal.Streams
	client *client.Client
	kinds  []client.Kind
	// namespaces has no effect for GLOBAL kinds.
	namespaces []string
	tests      []client.LabelTest
	// keep are the resources that are never selected.
	keep []resource.Key
	// partial reports whether resources are missing because the gateway cannot read them.
	partial bool
}

// find returns the resources that are selected now.
func (s *selection) find(ctx context.Context) ([]resource.Ref, error) {
	keep := make(map[resource.Key]bool, len(s.keep))
	for _, k := range s.keep {
		keep[k] = true
	}
	var out []resource.Ref
	for _, kind := range s.kinds {
		namespaces := s.namespaces
		if kind.Scope == "GLOBAL" {
			namespaces = []string{""}
		}
		for _, ns := range namespaces {
			for res, err := range s.client.List(ctx, client.ListRequest{
				Kind:      kind,
				Namespace: ns,
				Selector:  s.tests,
				NamesOnly: true,
			}) {
				switch {
				case !s.partial && exit.ReportUnreadable(s.std, err):
					s.partial = true
					continue
				case errors.As(err, new(*client.UnreadableError)): // already printed
					continue
				case err != nil:
					return nil, err
				case keep[resource.KeyOf(res)]:
					continue
				case len(out) == maxSelected:
					return nil, fmt.Errorf("more than %d resources have the labels", maxSelected)
				}
				out = append(out, resource.Ref{
					Kind:      kind,
					Namespace: resource.KeyOf(res).Namespace,
					Name:      res.Metadata.Name,
					Revision:  res.Metadata.Revision,
				})
			}
		}
	}
	return out, nil
}
