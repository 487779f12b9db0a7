"""`python -m assay_agent.agentserver`: the container's command."""

from assay_agent.agentserver import main

main()
