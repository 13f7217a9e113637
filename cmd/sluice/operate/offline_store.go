package operate

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/gateway"
)

// offlineStore has the flags of commands that open a store without a gateway. They are the settings of a gateway for
// Redis and keys.
type offlineStore struct {
	settings *config.Gateway
	keys     gateway.KeySource
	names    []string
}

func (o *offlineStore) register(cmd *cobra.Command) {
	o.settings = config.NewGateway()
	about := []string{"redis-password-file", "redis-prefix", "redis-shards", "redis-ca", "redis-cert", "redis-key"}
	var chosen []config.Setting
	for _, s := range o.settings.Settings() {
		if slices.Contains(about, s.Name) {
			chosen = append(chosen, s)
		}
	}
	config.Register(cmd.Flags(), chosen)
	cmd.Flags().StringVar(&o.keys.File, "encryption-keys-file", "", "file with the keys that encrypt secrets, as the gateway has it")
	cmd.Flags().StringVar(&o.keys.KMS, "encryption-kms", "", "socket of the KMS plugin that unwraps these keys, as the gateway has it")
	o.names = append(about, "encryption-keys-file", "encryption-kms")
}

// load sets flags that are not on the command line from the environment.
func (o *offlineStore) load(cmd *cobra.Command) error { return command.LoadOnly(cmd, o.names...) }

// unused returns an error if one of the flags was given although a gateway is used, where it has no effect.
func (o *offlineStore) unused(cmd *cobra.Command) error {
	for _, name := range o.names {
		if config.Named(cmd.Flags(), name) {
			return exit.Usage(fmt.Errorf("%s: it has no effect without --store", name))
		}
	}
	return nil
}

// at returns the store in a folder, or at a URL of Redis.
func (o *offlineStore) at(place string) gateway.Offline {
	return gateway.Offline{At: place, Settings: o.settings.Store}
}
