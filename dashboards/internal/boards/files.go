package boards

import "strings"

// Files returns everything that is generated, by its path in the repository.
func Files() (map[string][]byte, error) {
	files := make(map[string][]byte)
	for _, d := range All() {
		b, err := d.Encode()
		if err != nil {
			return nil, err
		}
		files["dashboards/"+strings.TrimPrefix(d.UID, "earshot-")+".json"] = b
	}
	rules, err := alerts()
	if err != nil {
		return nil, err
	}
	files["deploy/grafana/provisioning/alerting/earshot.yaml"] = rules
	return files, nil
}
