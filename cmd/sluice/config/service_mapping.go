package config

import (
	"fmt"
	"path/filepath"

	"github.com/sluicegw/sluice/backend/service/owner/standard"
)

// ReadMapping reads the mapping of a service with standard methods, and the descriptors that are named in it.
func ReadMapping(path string) (*standard.Mapping, *standard.Descriptors, error) {
	text, err := ReadAtMost(path, standard.MaxMapping)
	if err != nil {
		return nil, nil, err
	}
	mapping, err := standard.ParseMapping(text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if mapping.Descriptors == "" {
		return nil, nil, fmt.Errorf("%s: descriptors: it is missing; the path of a file with a FileDescriptorSet is accepted",
			path)
	}
	from := mapping.Descriptors
	if !filepath.IsAbs(from) {
		from = filepath.Join(filepath.Dir(path), from)
	}
	raw, err := ReadAtMost(from, standard.MaxDescriptors)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: descriptors: %w", path, err)
	}
	descriptors, err := standard.ReadDescriptors(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", from, err)
	}
	return mapping, descriptors, nil
}
