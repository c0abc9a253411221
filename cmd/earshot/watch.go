package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/earshot-dev/earshot/core/config"
)

// watchEvery is how often the configuration file is looked at. Editors replace
// files in too many ways, and ConfigMaps in one more, for a notification to be
// simpler.
const watchEvery = 2 * time.Second

// watch sends the configuration again whenever its file's content changes, and on SIGHUP.
// An invalid configuration is logged and ignored.
func (f *configFile) watch(ctx context.Context, log *slog.Logger) <-chan *config.Config {
	path := f.name()
	last, _ := os.ReadFile(path)
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	out := make(chan *config.Config)
	go func() {
		defer signal.Stop(hup)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			asked := false
			select {
			case <-ctx.Done():
				return
			case <-hup:
				asked = true
			case <-tick.C:
			}
			now, err := os.ReadFile(path)
			if !asked && (err != nil || bytes.Equal(now, last)) {
				continue
			}
			last = now
			c, err := types().Load(path, os.LookupEnv)
			if err != nil {
				log.Error("the configuration is not reloaded", "error", err)
				continue
			}
			select {
			case out <- c:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}
