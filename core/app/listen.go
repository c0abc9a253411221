package app

import (
	"fmt"
	"log/slog"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// listen makes the listener that the configuration describes.
func listen(c *config.Source, _ *slog.Logger) (source.Listener, error) {
	return nil, fmt.Errorf("type %s: not built yet", c.Type)
}
