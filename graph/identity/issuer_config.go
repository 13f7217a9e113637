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

// MaxIssuersFile is the maximum size of the file of issuers in bytes.
const MaxIssuersFile = 1 << 20

// maxSkew is the maximum value of IssuerConfig.ClockSkew.
const maxSkew = 5 * time.Minute

// Login describes how users log in with an issuer.
type Login struct {
	// Name is the name of the issuer. Its users and groups have the prefix oidc:NAME.
	Name string `yaml:"name" json:"name"`
	// URL is the issuer identifier. It must be https, except for an issuer on this machine.
	URL string `yaml:"url" json:"url"`
	// ClientID and Scopes are what the console and the command line use to log in. Default: the audience; and the
	// scopes openid, profile and email.
	ClientID string   `yaml:"clientId" json:"clientId"`
	Scopes   []string `yaml:"scopes" json:"scopes"`
}

// IssuerConfig is the entry of an issuer of OpenID Connect in the file of issuers.
type IssuerConfig struct {
	Login `yaml:",inline"`
	// Audience is an audience that tokens must have.
	Audience string `yaml:"audience"`
	// User is the path of the claim with the user's name; names of nested objects are joined by dots. Default: sub.
	// UserExpression is an alternative: a CEL expression over claims.
	User           string `yaml:"user"`
	UserExpression string `yaml:"userExpression"`
	// Groups and GroupsExpression are the same for the groups of the user. Default: groups.
	Groups           string `yaml:"groups"`
	GroupsExpression string `yaml:"groupsExpression"`
	// ClockSkew is how much the clock of the issuer may differ, such as 30s; at most 5m. Default: 30s.
	ClockSkew string `yaml:"clockSkew"`
	// CA is a PEM file with the CA certificates that are trusted for the issuer. Default: the CAs of the system.
	CA string `yaml:"ca"`

	skew time.Duration
}

// ParseIssuers parses the file of issuers: YAML with a list under the key issuers. The error joins all problems.
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
