package kit

import (
	"context"
	"fmt"

	"github.com/sluicegw/sluice/backend/service/owner"
)

func tagPromises() []promise {
	return []promise{
		{
			name: "tag-changes", says: "resources that differ have different tags, whatever of them has changed",
			needs: []capability{writes, conditional}, test: tagChanges,
		},
		{
			name: "tag-stays", says: "a resource that has not changed keeps its tag, in answers, Get and List",
			needs: []capability{writes, conditional}, test: tagStays,
		},
	}
}

// tagChanges changes the parts of a resource one after the other. It returns an error if two different versions have
// the same tag.
func tagChanges(ctx context.Context, t *trial) error {
	r, err := t.fresh(ctx)
	if err != nil {
		return err
	}
	versions := map[string]*owner.Resource{r.Tag: r}
	for _, change := range []struct {
		what  string
		lacks bool
		make  func(next *owner.Resource)
	}{
		{"a label", t.kind.NoLabels, func(next *owner.Resource) { next.Labels = map[string]string{versionLabel: "other"} }},
		{"an annotation", t.kind.NoAnnotations, func(next *owner.Resource) { next.Annotations = map[string]string{"example.org/a": "b"} }},
		{"the description", t.kind.NoDescription, func(next *owner.Resource) { next.Description = "other" }},
		{"the spec", false, func(next *owner.Resource) { next.Spec = t.desired(r.Key, 2).Spec }},
		{"a label once more", t.kind.NoLabels, func(next *owner.Resource) { next.Labels = nil }},
	} {
		if change.lacks {
			continue
		}
		w := owner.Write{Resource: owner.Resource{
			Key: r.Key, Spec: r.Spec, Labels: r.Labels, Annotations: r.Annotations, Description: r.Description,
		}, IfTag: r.Tag}
		change.make(&w.Resource)
		r, err = done(t.Service.Write(ctx, w))
		if err != nil {
			return fmt.Errorf("a change of %s: %w", change.what, err)
		}
		if r.Tag == "" {
			return fmt.Errorf("after a change of %s there is no tag", change.what)
		}
		if was := versions[r.Tag]; was != nil {
			if what := contentDifference(was, r); what != "" {
				return fmt.Errorf("after a change of %s the tag is an older one's: %s", change.what, what)
			}
		}
		versions[r.Tag] = r
	}
	return nil
}

func tagStays(ctx context.Context, t *trial) error {
	r, err := t.fresh(ctx)
	if err != nil {
		return err
	}
	for range rounds {
		if err := t.stays(ctx, r, "nothing"); err != nil {
			return err
		}
	}
	if _, err := t.fresh(ctx); err != nil {
		return err
	}
	if err := t.stays(ctx, r, "a write of another resource"); err != nil {
		return err
	}
	return t.eventually(ctx, func() error {
		all, err := t.list(ctx, fullPage)
		if err != nil {
			return err
		}
		for i := range all.Resources {
			if all.Resources[i].Key != r.Key {
				continue
			}
			if what := difference(r, &all.Resources[i]); what != "" {
				return fmt.Errorf("the answer to the write and List: %s", what)
			}
			return nil
		}
		return fmt.Errorf("List does not show %s", r.Key)
	})
}
