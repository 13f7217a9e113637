package body

// Metadata is the part of the metadata that lives in the body.
type Metadata struct {
	// Generation counts changes of the spec, from 1.
	Generation  int64
	Labels      map[string]string
	Annotations map[string]string
	Description string
}
