{{/* The name of all objects: that of the release, or chart and release where it does not have the chart's in it. */}}
{{- define "slacktide.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels of which chart and release an object is. */}}
{{- define "slacktide.release" -}}
{{- if .Values.releaseLabels -}}
app.kubernetes.io/instance: {{ .Release.Name }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}
{{- end -}}

{{- define "slacktide.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* The settings file: what this chart decides itself, and the value settings beside it. */}}
{{- define "slacktide.settings" -}}
{{- $own := dict "scheduler_name" .Values.schedulerName "leader_election" true "listen" "0.0.0.0:10359" -}}
{{- $own = merge $own (dict "lease_namespace" .Release.Namespace "lease_name" (include "slacktide.name" .)) -}}
{{- $settings := deepCopy .Values.settings -}}
{{- $_ := set $settings "kube" (merge $own ($settings.kube | default dict)) -}}
{{- $_ := set $settings "version" 1 -}}
{{- toYaml $settings -}}
{{- end -}}

{{/* What the schema cannot say of values that hang together. */}}
{{- define "slacktide.checked" -}}
{{- $defaults := list -}}
{{- range $name, $spec := .Values.classes -}}
{{- if $spec.default -}}{{- $defaults = append $defaults $name -}}{{- end -}}
{{- end -}}
{{- if gt (len $defaults) 1 -}}
{{- fail (printf "classes: found default: true in %s, expected it in one at most: pods without a class have one default; leave it in one" (join " and " $defaults)) -}}
{{- end -}}
{{- $profiles := (.Values.settings.kube | default dict).profiles | default "[]" -}}
{{- range ($profiles | fromJsonArray) -}}
{{- if not (kindIs "map" .) -}}
{{- fail (printf "settings.kube.profiles: found %s, expected a JSON list of objects with schedulerName, such as '[{\"schedulerName\": \"batch\"}]'" ($profiles | quote)) -}}
{{- end -}}
{{- if not .schedulerName -}}
{{- fail (printf "settings.kube.profiles: found %s without schedulerName, expected one in each object, such as '[{\"schedulerName\": \"batch\"}]'" (toJson .)) -}}
{{- end -}}
{{- end -}}
{{- $release := .Release -}}
{{- range (include "slacktide.names" . | fromJsonArray) -}}
{{- $taken := lookup "rbac.authorization.k8s.io/v1" "ClusterRole" "" (printf "slacktide:scheduler:%s" .) | default dict -}}
{{- $owner := dig "metadata" "annotations" "meta.helm.sh/release-name" "" $taken -}}
{{- $where := dig "metadata" "annotations" "meta.helm.sh/release-namespace" "" $taken -}}
{{- if and $owner (or (ne $owner $release.Name) (ne $where $release.Namespace)) -}}
{{- fail (printf "schedulerName: found %s, which release %s in namespace %s has, expected a name of its own: both would place the same pods, and evict for them; give another one, or uninstall that release" . $owner $where) -}}
{{- end -}}
{{- end -}}
{{- if lookup "v1" "Namespace" "" "kube-system" -}}
{{- range $namespace, $_ := .Values.quotas -}}
{{- if and (ne $namespace $release.Namespace) (not (lookup "v1" "Namespace" "" $namespace)) -}}
{{- fail (printf "quotas.%s: found a namespace that does not exist, expected one that does; nothing was installed: make it (kubectl create namespace %s), or leave the quota out" $namespace $namespace) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Whether pods that a disruption budget protects may be deleted: then the scheduler needs that right. */}}
{{- define "slacktide.deletes" -}}
{{- if ne ((.Values.settings.kube | default dict).disruption_budgets | default "hard") "hard" -}}yes{{- end -}}
{{- end -}}

{{/* Whether DaemonSets are services: kube.daemon_sets. */}}
{{- define "slacktide.daemons" -}}
{{- if eq ((.Values.settings.kube | default dict).daemon_sets | default "system") "services" -}}yes{{- end -}}
{{- end -}}

{{/* Whether Prometheus needs an account to read metrics with. */}}
{{- define "slacktide.scraped" -}}
{{- if or .Values.metrics.scrapeConfig.enabled .Values.metrics.podMonitor.enabled .Values.metrics.serviceMonitor.enabled -}}yes{{- end -}}
{{- end -}}

{{/* The scheduler's names, as JSON. */}}
{{- define "slacktide.names" -}}
{{- $names := list .Values.schedulerName -}}
{{- range ((.Values.settings.kube | default dict).profiles | default "[]" | fromJsonArray) -}}
{{- $names = append $names .schedulerName -}}
{{- end -}}
{{- toJson ($names | uniq) -}}
{{- end -}}

{{/* The same, as a list of CEL. */}}
{{- define "slacktide.schedulers" -}}
['{{ join "', '" (include "slacktide.names" . | fromJsonArray) }}']
{{- end -}}
