// Package yamltext writes objects as YAML for people: as kubectl lays it out, with every text of several lines as lines.
package yamltext
