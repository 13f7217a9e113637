package write

import (
	"context"
	"errors"

	"github.com/sluicegw/sluice/backend/manifest"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/graph/client"
)

// manifest returns a draft of the whole resource.
func (e *edit) manifest(ctx context.Context) (*draft, error) {
	res, err := resource.GetExisting(ctx, e.client, e.subject, client.YAML)
	if err != nil {
		return nil, err
	}
	return &draft{text: res.Manifest, write: func(ctx context.Context, edited string) (string, error) {
		if err := sameResource(res.Manifest, edited); err != nil {
			return "", textError{err}
		}
		wanted, err := manifest.ClearRemoved(res.Manifest, edited)
		if err != nil {
			return "", textError{err}
		}
		m := modification{writing: writing{std: e.std, client: e.client, dry: e.dry}}
		out, err := m.apply(ctx, e.subject, wanted, res.Metadata.Revision)
		if err != nil {
			return "", writeError(ctx, err, e.dry)
		}
		return resource.KeyOf(res).String() + " " + out.done + e.dry.Mark(), nil
	}}, nil
}

// sameResource returns an error if the edited text is about another resource.
func sameResource(was, text string) error {
	old, err := manifest.Parse(was)
	if err != nil {
		return err
	}
	now, err := manifest.Parse(text)
	if err != nil {
		return err
	}
	if old.Kind != now.Kind || old.Metadata.Name != now.Metadata.Name ||
		output.OrEmpty(old.Metadata.Namespace) != output.OrEmpty(now.Metadata.Namespace) {
		return errors.New("kind, name and namespace cannot be changed; apply the text to create another resource")
	}
	return nil
}
