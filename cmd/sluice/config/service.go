package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sluicegw/sluice/backend/service/owner/remote"
)

// Service is the configuration of a resource service.
type Service struct {
	// Address is the URL of the service.
	Address string
	// Protocol is the protocol of calls. Default: the first of [remote.Protocols].
	Protocol remote.Protocol
	// CA is a PEM file with the CA certificates that are trusted for the service. Default: the CAs of the system.
	CA string
	// Cert and Key are the PEM files of the client certificate and its key. Default: none.
	Cert, Key string
	// ServerName is the name that the certificate of the service must have. Default: the host of the address.
	ServerName string
	// Timeout is the time limit of each call. Default: [remote.DefaultTimeout].
	Timeout time.Duration
	// InFlight is the maximum number of calls at a time. Default: [remote.DefaultInFlight].
	InFlight int
	// CompareInterval is the time between two comparisons of the mirror with all resources of the service. Default:
	// [mirror.DefaultCompareInterval], and [mirror.UnfollowedInterval] for kinds whose changes the service does not
	// send.
	CompareInterval time.Duration
	// Mapping is a file that describes how the standard methods of the service are called. Default: the service
	// implements the contract in schema/service.
	Mapping string
}

// The limits of the settings of a service.
const (
	minCompareInterval = 5 * time.Second
	maxCompareInterval = 24 * time.Hour
	maxServiceTimeout  = 30 * time.Second
	maxInFlight        = 10_000
	maxServiceName     = 63
)

// serviceName matches the name of a service. The names in @resource(service:) have the same form.
var serviceName = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// CheckServiceName returns an error for an invalid name of a service.
func CheckServiceName(name string) error {
	if !serviceName.MatchString(name) || len(name) > maxServiceName {
		return fmt.Errorf("a name of small letters, digits and '-' is accepted, at most %d, like crm", maxServiceName)
	}
	return nil
}

// Remote returns the configuration of the service's client, without TLS.
func (s Service) Remote(name string) remote.Config {
	return remote.Config{
		Name: name, Address: s.Address, Protocol: s.Protocol, Timeout: s.Timeout, InFlight: s.InFlight,
	}
}

// Validate returns an error that joins all problems with the service. name is the name of the service.
func (s Service) Validate(name string) error {
	errs := []error{s.Remote(name).Validate()}
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if err := CheckServiceName(name); err != nil {
		errs = append(errs, err)
	}
	if s.Timeout > maxServiceTimeout {
		refuse("timeout: %s; at most %s is accepted", s.Timeout, maxServiceTimeout)
	}
	if s.InFlight > maxInFlight {
		refuse("in-flight: %d; at most %d is accepted", s.InFlight, maxInFlight)
	}
	if i := s.CompareInterval; i != 0 && (i < minCompareInterval || i > maxCompareInterval) {
		refuse("compare-interval: %s; %s to %s is accepted", i, minCompareInterval, maxCompareInterval)
	}
	if (s.Cert == "") != (s.Key == "") {
		refuse("cert, key: both are needed")
	}
	if strings.HasPrefix(s.Address, "http:") && s.CA+s.Cert+s.Key+s.ServerName != "" {
		refuse("ca, cert, key, server-name: they have no effect with an address of http; https is accepted")
	}
	return errors.Join(errs...)
}

// Services maps names to resource services.
type Services map[string]Service

// CompareIntervals maps the names of services to their CompareInterval. Services with the default are left out.
func (s Services) CompareIntervals() map[string]time.Duration {
	out := map[string]time.Duration{}
	for name, of := range s {
		if of.CompareInterval > 0 {
			out[name] = of.CompareInterval
		}
	}
	return out
}

// Validate returns an error of one line with all problems; each is preceded by the name of the service.
func (s Services) Validate() error {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if err := s[name].Validate(name); err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				problems = append(problems, name+": "+line)
			}
		}
	}
	return oneError(problems)
}

// oneError joins problems into one error; nil if there are none.
func oneError(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, "; "))
}

// serviceKey is a key in the mapping of a service.
type serviceKey struct {
	name string
	// set parses the JSON value raw and sets the field.
	set func(to *Service, raw []byte) error
	// text returns the value of the field in a form that can be encoded as JSON; nil if the field has its default.
	text func(s Service) any
}

// textKey returns a key whose value is a string.
func textKey(name string, of func(*Service) *string) serviceKey {
	return serviceKey{
		name: name,
		set: func(to *Service, raw []byte) error {
			if json.Unmarshal(raw, of(to)) != nil || *of(to) == "" {
				return fmt.Errorf("%s is no text", raw)
			}
			return nil
		},
		text: func(s Service) any {
			if *of(&s) == "" {
				return nil
			}
			return *of(&s)
		},
	}
}

// durationKey returns a key whose value is a duration.
func durationKey(name string, of func(*Service) *time.Duration) serviceKey {
	return serviceKey{
		name: name,
		set: func(to *Service, raw []byte) error {
			var text string
			if json.Unmarshal(raw, &text) != nil || (*span)(of(to)).Set(text) != nil || *of(to) <= 0 {
				return fmt.Errorf("%s is not a duration like 5s", raw)
			}
			return nil
		},
		text: func(s Service) any {
			if *of(&s) == 0 {
				return nil
			}
			return (*span)(of(&s)).String()
		},
	}
}

// serviceKeys returns all keys in the mapping of a service.
func serviceKeys() []serviceKey {
	return []serviceKey{
		textKey("address", func(s *Service) *string { return &s.Address }),
		textKey("protocol", func(s *Service) *string { return (*string)(&s.Protocol) }),
		textKey("mapping", func(s *Service) *string { return &s.Mapping }),
		textKey("ca", func(s *Service) *string { return &s.CA }),
		textKey("cert", func(s *Service) *string { return &s.Cert }),
		textKey("key", func(s *Service) *string { return &s.Key }),
		textKey("server-name", func(s *Service) *string { return &s.ServerName }),
		durationKey("timeout", func(s *Service) *time.Duration { return &s.Timeout }),
		durationKey("compare-interval", func(s *Service) *time.Duration { return &s.CompareInterval }),
		{
			name: "in-flight",
			set: func(to *Service, raw []byte) error {
				if json.Unmarshal(raw, &to.InFlight) != nil || to.InFlight <= 0 {
					return fmt.Errorf("%s is not a whole number above 0", raw)
				}
				return nil
			},
			text: func(s Service) any {
				if s.InFlight == 0 {
					return nil
				}
				return s.InFlight
			},
		},
	}
}

// serviceMap is the flag for Services. Its value is a list of NAME=ADDRESS, separated by commas, or a JSON object with
// the mapping of each service, as in the configuration file.
type serviceMap Services

func (m *serviceMap) Type() string { return "services" }

// String returns the services as JSON; empty if there are none.
func (m *serviceMap) String() string {
	if len(*m) == 0 {
		return ""
	}
	out := map[string]map[string]any{}
	for name, s := range *m {
		out[name] = map[string]any{}
		for _, key := range serviceKeys() {
			if value := key.text(s); value != nil {
				out[name][key.name] = value
			}
		}
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func (m *serviceMap) Set(text string) error {
	read := parseServices
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		read = decodeServices
	}
	services, err := read(text)
	if err != nil {
		return err
	}
	*m = serviceMap(services)
	return nil
}

// parseServices parses a list of NAME=ADDRESS, separated by commas.
func parseServices(text string) (Services, error) {
	out := Services{}
	if text == "" {
		return out, nil
	}
	for one := range strings.SplitSeq(text, ",") {
		name, address, ok := strings.Cut(one, "=")
		switch {
		case !ok:
			return nil, fmt.Errorf("%q is not NAME=ADDRESS, like crm=https://crm.example:8443; in the configuration file, "+
				"services is a mapping", WithoutCredentials(one))
		case out[name] != Service{}:
			return nil, fmt.Errorf("%s: it is there twice", name)
		}
		out[name] = Service{Address: address}
	}
	return out, nil
}

// decodeServices parses a JSON object with the mapping of each service.
func decodeServices(text string) (Services, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("it is no JSON object: %w", err)
	}
	out := Services{}
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		service, wrong := decodeService(all[name])
		for _, problem := range wrong {
			problems = append(problems, name+": "+problem)
		}
		out[name] = service
	}
	return out, oneError(problems)
}

func decodeService(raw json.RawMessage) (out Service, problems []string) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil || values == nil {
		return out, []string{"it is no mapping; a mapping with an address is accepted"}
	}
	keys := serviceKeys()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		i := slices.IndexFunc(keys, func(k serviceKey) bool { return k.name == name })
		switch {
		case i < 0:
			known := make([]string, len(keys))
			for i, k := range keys {
				known[i] = k.name
			}
			problems = append(problems, fmt.Sprintf("unknown key %q%s", name, suggest(name, known)))
		case bytes.Equal(values[name], []byte("null")):
			problems = append(problems, name+": there is no value; leave the key out for the default")
		default:
			if err := keys[i].set(&out, values[name]); err != nil {
				problems = append(problems, name+": "+err.Error())
			}
		}
	}
	return out, problems
}
