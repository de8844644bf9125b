"""What the demo asks the target: the kind of question that the demo's drafter was trained on.

A drafter is only good at what it has seen; asked for code or another language this one proposes
little that the target keeps. Each prompt is one user message of a chat.
"""

PROMPTS = [
    "Summarize what people should know about volcanoes.",
    "What are the pros and cons of saving money?",
    "Suggest a title and an outline for an essay about stress.",
    "List the steps to get started with gardening.",
    "Explain how bread is made to a beginner.",
    "Make a table of contents for a book about a lighthouse keeper.",
    "What are common mistakes people make about learning a language?",
    "Compare teaching today with teaching one hundred years ago.",
    "Summarize what people should know about inflation.",
    "Give some tips for someone who wants to sleep better.",
]
