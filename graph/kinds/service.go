package kinds

import (
	"github.com/sluicegw/sluice/backend/descriptor"
)

// service reads the argument service, and reports declarations that a kind owned by a service cannot have.
func (l *loader) service(k *descriptor.Kind, d *directive) {
	if !d.has("service") {
		return
	}
	k.Service = d.text("service")
	l.serviceName(k, d, "service", k.Service)
	for _, of := range []struct {
		argument string
		given    bool
		why      string
	}{
		{"sensitive", k.Sensitive, "the mirror has no record apart for secrets, and no service is asked for them"},
		{"expires", k.Expires, "the service alone decides how long a resource lives"},
		{"subKinds", d.has("subKinds"), "the contract of services does not have them; use a field of the spec"},
	} {
		if of.given {
			l.report(d.at(of.argument), "kind %s: %s does not go with service: %s; leave it out",
				k.Name, own(of.argument), own(of.why))
		}
	}
}

// review reads the arguments review and reviewFailure.
func (l *loader) review(k *descriptor.Kind, d *directive) {
	k.Review = d.text("review")
	k.ReviewAllowsFailure = d.text("reviewFailure") == "ALLOW"
	if !d.has("review") {
		if d.has("reviewFailure") {
			l.report(d.at("reviewFailure"), "kind %s: reviewFailure goes with review; leave it out, or name the service that "+
				"reviews changes", k.Name)
		}
		return
	}
	l.serviceName(k, d, "review", k.Review)
	if d.has("service") {
		l.report(d.at("review"), "kind %s: review does not go with service: the service that owns the kind judges each "+
			"change itself; leave one of them out", k.Name)
	}
}

// serviceName reports a text that is not a valid name of a service.
func (l *loader) serviceName(k *descriptor.Kind, d *directive, argument, name string) {
	if !serviceForm.MatchString(name) || len(name) > maxService {
		l.report(d.at(argument), "kind %s: %s %q: at most %d lower case letters, digits and '-' that begin with a letter "+
			"and do not end with '-' are wanted", k.Name, own(argument), name, maxService)
	}
}
