package engine

import "github.com/99designs/gqlgen/graphql"

// StringMap is a map of strings as it is stored: a JSON object. The API shows
// it as a list of entries, and takes it as one.
type StringMap map[string]string

// StringMapPatch changes entries of a [StringMap]: a JSON merge patch, in which
// nil removes an entry.
type StringMapPatch map[string]*string

// UnmarshalGQL reads a list of entries, no two with one key.
func (m *StringMap) UnmarshalGQL(v any) error {
	*m = StringMap{}
	return entries(v, func(key string, value any) error {
		text, ok := value.(string)
		if !ok {
			return refuseInput("entry %.64q has no value; a string is wanted", key)
		}
		if _, twice := (*m)[key]; twice {
			return refuseInput("entry %.64q is given twice", key)
		}
		(*m)[key] = text
		return nil
	})
}

// UnmarshalGQL reads a list of changes of entries, no two with one key.
func (m *StringMapPatch) UnmarshalGQL(v any) error {
	*m = StringMapPatch{}
	return entries(v, func(key string, value any) error {
		if _, twice := (*m)[key]; twice {
			return refuseInput("entry %.64q is given twice", key)
		}
		(*m)[key] = nil
		if text, ok := value.(string); ok {
			(*m)[key] = &text
		}
		return nil
	})
}

// entries reads a coerced input list of {key, value}.
func entries(v any, each func(key string, value any) error) error {
	for _, e := range graphql.CoerceList(v) {
		entry, ok := e.(map[string]any)
		if !ok {
			return refuseInput("%s is no entry of a map; {key, value} is wanted", jsonKind(e))
		}
		key, ok := entry["key"].(string)
		if !ok {
			return refuseInput("an entry of a map has no key")
		}
		if err := each(key, entry["value"]); err != nil {
			return err
		}
	}
	return nil
}
