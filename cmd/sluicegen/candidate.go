package main

import (
	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/graph/release"
)

// rewriteCandidate writes the candidate version of a catalogue's API again, if there is one. dir is the folder of the
// catalogue.
func rewriteCandidate(dir string) error {
	texts, err := release.ReadDir(dir)
	if err != nil {
		return err
	}
	sources, versions := release.Split(texts)
	schema, err := kinds.ReadTexts(sources, dir)
	if err != nil {
		return err
	}
	api, err := schema.API()
	if err != nil {
		return err
	}
	all, err := release.Read(versions, dir)
	if err != nil {
		return err
	}
	for _, v := range all {
		if !v.Candidate {
			continue
		}
		if err := release.Rewrite(dir, v.Number, sources, api); err != nil {
			return err
		}
	}
	return nil
}
