package inspect

import "strings"

// Base is the last element of the path of a project, as the agent's machine writes it.
func Base(project string) string {
	project = strings.TrimRight(project, `/\`)
	return project[strings.LastIndexAny(project, `/\`)+1:]
}
