package catalogue

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// diffService returns the difference between two owners of a kind. Resources of the gateway must not be given to a
// service: they would be treated as copies of the service's resources, and deleted if the service does not have them.
// So [Gate.Accept] refuses a change between the gateway and a service while there are resources. When one service
// follows another, the copies stay and are compared with the new owner.
func diffService(kind, was, is string) Difference {
	out := Difference{Kind: kind, Severity: Dangerous, Moves: true}
	switch {
	case was == "":
		out.What = fmt.Sprintf("is owned by service %q now, and was stored by the gateway itself", is)
	case is == "":
		out.What = fmt.Sprintf("is stored by the gateway itself now, and was owned by service %q", was)
	default:
		out.What = fmt.Sprintf("was owned by service %q and is by %q: what that one does not have is deleted here", was, is)
		out.Severity = BreaksStored
		out.Moves = false
	}
	return out
}

// owners returns reasons to refuse kinds whose resources have another owner: a service owns the kind now, but the
// resources are the gateway's own, or the reverse. The owner of the stored resources is the one in the newest accepted
// catalogue that has the kind.
func (g Gate) owners(ctx context.Context, hashes []string, c Candidate) (reasons []string, err error) {
	recorded := map[string]Outline{}
	for i := range c.Kinds {
		k := &c.Kinds[i]
		why, err := g.otherOwner(ctx, recorded, hashes, k)
		if err != nil {
			return nil, err
		}
		if why != "" {
			reasons = append(reasons, c.Places.ofKind(k.Name)+why)
		}
	}
	return reasons, nil
}

// otherOwner returns the reason why the owner of a kind cannot be changed while there are resources; empty if there is
// none. recorded caches outlines that were read.
func (g Gate) otherOwner(
	ctx context.Context, recorded map[string]Outline, hashes []string, k *descriptor.Kind,
) (why string, err error) {
	for _, hash := range slices.Backward(hashes) {
		if _, read := recorded[hash]; !read {
			if recorded[hash], err = g.outline(ctx, hash); err != nil {
				return "", err
			}
		}
		before, known := recorded[hash].Kinds[k.Name]
		switch {
		case !known:
			continue
		case (before.Service == "") == (k.Service == ""):
			return "", nil
		}
		n, err := g.count(ctx, k.Name)
		if err != nil || n == 0 {
			return "", err
		}
		if k.Service == "" {
			return fmt.Sprintf("kind %s has the mirror of service %q (resources of the kind: %d): it cannot be taken from the "+
				"service while that is stored, because what the service changes would be missed",
				k.Name, before.Service, n), nil
		}
		return fmt.Sprintf("kind %s has resources that the gateway stores itself (resources of the kind: %d): it cannot be "+
			"given to service %q while they are stored, because those that the service does not have would be deleted",
			k.Name, n, k.Service), nil
	}
	return "", nil
}
