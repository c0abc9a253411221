package app

import (
	"fmt"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/internal/source"
)

// listen makes the listener that the configuration describes.
func (r *runner) listen(c *config.Source) (source.Listener, error) {
	return nil, fmt.Errorf("type %s: not built yet", c.Type)
}
