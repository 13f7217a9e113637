package kind

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// readMetadata reads a part of the metadata; null is none.
func (st *State) readMetadata(name string, m *jsontree.Member) error {
	switch name {
	case "labels", "annotations":
		texts, err := textsOf(m)
		if err != nil {
			return fmt.Errorf("metadata.%s: %w", name, err)
		}
		if name == "labels" {
			st.Meta.Labels = texts
		} else {
			st.Meta.Annotations = texts
		}
		return nil
	case "generation", "description", "updatedBy", "deletionRequestedAt", "finalizing", "finalizers", "waits", "managers":
	default:
		return nil
	}
	value, _, err := m.Tree()
	if err != nil {
		return err
	}
	ok := true
	switch name {
	case "generation":
		st.Meta.Generation, ok = wholeOf(value)
	case "description":
		st.Meta.Description, ok = textOf(value)
	case "updatedBy":
		st.Meta.UpdatedBy, ok = textOf(value)
	case "deletionRequestedAt":
		st.Meta.DeletionRequestedAt, ok = timeOf(value)
	case "finalizing":
		st.Meta.Finalizing, _ = value.(bool)
	case "finalizers":
		st.Meta.Finalizers, ok = listOf(value)
	case "waits":
		st.Meta.Waits, ok = listOf(value)
	case "managers":
		st.Meta.Managers, ok = managersOf(value)
	}
	if !ok {
		return errPart("metadata." + name)
	}
	return nil
}

// textsOf are the entries of a map of texts; null is none, of the map and of an entry.
func textsOf(m *jsontree.Member) (out map[string]string, err error) {
	if m.IsNull() {
		return nil, nil
	}
	out = map[string]string{}
	return out, m.Members(func(key string, m *jsontree.Member) error {
		value, _, err := m.Tree()
		text, ok := value.(string)
		switch {
		case err != nil:
			return err
		case value == nil:
			delete(out, key)
		case !ok:
			return errPart(key)
		default:
			out[key] = text
		}
		return nil
	})
}

// listOf are the texts of a list; null is none.
func listOf(v any) (out []string, ok bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, v == nil
	}
	for _, e := range list {
		text, ok := e.(string)
		if !ok {
			return nil, false
		}
		out = append(out, text)
	}
	return out, true
}

// managersOf are the field managers in a list; null is none.
func managersOf(v any) (out []body.Manager, ok bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, v == nil
	}
	for _, e := range list {
		m, _ := e.(map[string]any)
		name, ok1 := m["name"].(string)
		labels, ok2 := listOf(m["labels"])
		annotations, ok3 := listOf(m["annotations"])
		if !ok1 || !ok2 || !ok3 {
			return nil, false
		}
		out = append(out, body.Manager{Name: name, Labels: labels, Annotations: annotations})
	}
	return out, true
}

func appendMetadata(b []byte, m body.Metadata) []byte {
	b = strconv.AppendInt(append(b, `{"generation":`...), m.Generation, 10)
	if len(m.Labels) > 0 {
		b = jsontree.AppendTexts(append(b, `,"labels":`...), m.Labels)
	}
	if len(m.Annotations) > 0 {
		b = jsontree.AppendTexts(append(b, `,"annotations":`...), m.Annotations)
	}
	if m.Description != "" {
		b = jsontree.AppendText(append(b, `,"description":`...), m.Description)
	}
	if m.UpdatedBy != "" {
		b = jsontree.AppendText(append(b, `,"updatedBy":`...), m.UpdatedBy)
	}
	if !m.DeletionRequestedAt.IsZero() {
		b = jsontree.AppendText(append(b, `,"deletionRequestedAt":`...), m.DeletionRequestedAt.UTC().Format(time.RFC3339Nano))
	}
	if m.Finalizing {
		b = append(b, `,"finalizing":true`...)
	}
	b = appendList(b, `,"finalizers":`, m.Finalizers)
	b = appendList(b, `,"waits":`, m.Waits)
	for i, by := range m.Managers {
		if i == 0 {
			b = append(b, `,"managers":[`...)
		} else {
			b = append(b, ',')
		}
		b = jsontree.AppendText(append(b, `{"name":`...), by.Name)
		b = appendList(b, `,"labels":`, by.Labels)
		b = append(appendList(b, `,"annotations":`, by.Annotations), '}')
	}
	if len(m.Managers) > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}

// appendList appends a member with a list of texts, unless it has none.
func appendList(b []byte, member string, texts []string) []byte {
	for i, text := range texts {
		if i == 0 {
			b = append(append(b, member...), '[')
		} else {
			b = append(b, ',')
		}
		b = jsontree.AppendText(b, text)
	}
	if len(texts) > 0 {
		b = append(b, ']')
	}
	return b
}

// sameMetadata compares what a caller may set; empty is the same as absent.
func sameMetadata(a, b body.Metadata) bool {
	return a.Description == b.Description && slices.Equal(a.Finalizers, b.Finalizers) && maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		slices.EqualFunc(a.Managers, b.Managers, func(x, y body.Manager) bool {
			return x.Name == y.Name && slices.Equal(x.Labels, y.Labels) && slices.Equal(x.Annotations, y.Annotations)
		})
}
