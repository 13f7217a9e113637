package client

import (
	"encoding/json"
	"strconv"
)

// Place is where in an input a value at fault stands, like input.spec.resource.tags[1].
// A gateway may give it as text, or as the list of its steps.
type Place string

// UnmarshalJSON reads either form.
func (p *Place) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err == nil {
		*p = Place(text)
		return nil
	}
	var steps []any
	if err := json.Unmarshal(raw, &steps); err != nil {
		return err
	}
	for _, s := range steps {
		switch s := s.(type) {
		case string:
			if text != "" {
				text += "."
			}
			text += s
		case float64:
			text += "[" + strconv.Itoa(int(s)) + "]"
		}
	}
	*p = Place(text)
	return nil
}
