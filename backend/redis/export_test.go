package redis

// ForTest makes each Open begin an epoch, as drivers on files do.
func ForTest(cfg Config) Config {
	cfg.newEpoch = true
	return cfg
}
