package identity

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"time"

	"github.com/sluicegw/sluice/internal/settings"
)

// MaxIssuersFile is the maximum size of a file of issuers in bytes.
const MaxIssuersFile = 1 << 20

// maxSkew is the maximum of IssuerConfig.ClockSkew.
const maxSkew = 5 * time.Minute

// Login is how a user logs in at an issuer.
type Login struct {
	// Name is part of the prefix oidc:NAME of the issuer's users and groups.
	Name string `yaml:"name" json:"name"`
	// URL is the issuer identifier. It must be https, or http on this machine.
	URL string `yaml:"url" json:"url"`
	// The console and the command line log in with ClientID and Scopes; default: the audience, and openid, profile and
	// email.
	ClientID string   `yaml:"clientId" json:"clientId"`
	Scopes   []string `yaml:"scopes" json:"scopes"`
}

// IssuerConfig is an issuer of OpenID Connect in the file of issuers.
type IssuerConfig struct {
	Login `yaml:",inline"`
	// Audience is the audience that tokens must contain.
	Audience string `yaml:"audience"`
	// User is the path of the claim that has the user's name, with dots between the names of nested
	// objects; default sub. UserExpression is a CEL expression over claims to use instead.
	User           string `yaml:"user"`
	UserExpression string `yaml:"userExpression"`
	// Groups and GroupsExpression are the same for the groups; default groups.
	Groups           string `yaml:"groups"`
	GroupsExpression string `yaml:"groupsExpression"`
	// ClockSkew is how far the issuer's clock may differ, like 30s; at most 5m. Default
	// 30s.
	ClockSkew string `yaml:"clockSkew"`
	// CA is a file with the CA certificates (PEM) that are trusted for the issuer;
	// default: the system's.
	CA string `yaml:"ca"`

	skew time.Duration
}

// ParseIssuers parses a file of issuers in YAML: a list under the key issuers. All problems are
// joined in the error.
func ParseIssuers(data []byte) ([]IssuerConfig, error) {
	var file struct {
		Issuers []IssuerConfig `yaml:"issuers"`
	}
	if err := settings.Decode(data, &file); err != nil {
		return nil, err
	}
	if len(file.Issuers) == 0 {
		return nil, errors.New("there is no issuer in it; issuers: is a list of them")
	}
	var errs []error
	names, urls := map[string]bool{}, map[string]bool{}
	for i := range file.Issuers {
		c := &file.Issuers[i]
		c.setDefaults()
		err := c.validate()
		if names[c.Name] {
			err = errors.Join(err, errors.New("name: another issuer has it"))
		}
		if urls[c.URL] {
			err = errors.Join(err, errors.New("url: another issuer has it"))
		}
		names[c.Name], urls[c.URL] = true, true
		if err != nil {
			errs = append(errs, fmt.Errorf("issuers[%d]: %w", i, err))
		}
	}
	return file.Issuers, errors.Join(errs...)
}

func (c *IssuerConfig) setDefaults() {
	if c.UserExpression == "" {
		c.User = cmp.Or(c.User, "sub")
	}
	if c.GroupsExpression == "" {
		c.Groups = cmp.Or(c.Groups, "groups")
	}
	c.ClockSkew = cmp.Or(c.ClockSkew, "30s")
	c.ClientID = cmp.Or(c.ClientID, c.Audience)
	if len(c.Scopes) == 0 {
		c.Scopes = []string{"openid", "profile", "email"}
	}
}

// issuerName is the form of an issuer's name.
var issuerName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func (c *IssuerConfig) validate() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !issuerName.MatchString(c.Name) {
		refuse("name: %q; a DNS label is accepted, like corp", c.Name)
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil ||
		u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname())) {
		refuse("url: an https URL is accepted, without a query, like https://login.example.com")
	}
	if c.Audience == "" {
		refuse("audience: missing; it is what the aud of tokens must have")
	}
	if c.User != "" && c.UserExpression != "" {
		refuse("user, userExpression: choose one")
	}
	if c.Groups != "" && c.GroupsExpression != "" {
		refuse("groups, groupsExpression: choose one")
	}
	if c.skew, err = time.ParseDuration(c.ClockSkew); err != nil || c.skew < 0 || c.skew > maxSkew {
		refuse("clockSkew: 0s to 5m is accepted")
	}
	return errors.Join(errs...)
}
